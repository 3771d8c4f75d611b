//! Members of a ring and a server of leases, in one thread and with random faults: no key has two holders.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease as Object;
use lariat_core::{Gvk, ObjectKey};
use tokio::time::Instant;

use super::config::Sharding;
use super::gate::{Gate, Permit};
use super::record::{is_same_state, labelled, renewed};
use super::share::{ShardKey, Share};
use super::state::{MemberState, Observation, Step};
use crate::config::Lease;
use crate::record::Record;

const SECOND: Duration = Duration::from_secs(1);

/// The step of the simulated clock.
const TICK: Duration = Duration::from_millis(100);

/// The number of keys.
const KEYS: u32 = 30;

/// How long faults happen.
const FAULTS: u32 = 1_200;

/// How long the members have to settle afterwards.
///
/// It is the longest suspension, two lease durations, a drain timeout and its margin.
const REST: u32 = 900;

/// The leases on the server.
#[derive(Default)]
struct Server {
    leases: BTreeMap<String, Object>,
    /// The number of writes.
    writes: i64,
}

impl Server {
    /// Stores a lease; returns what watches show.
    fn store(&mut self, mut lease: Object) -> Observation {
        self.writes += 1;
        lease.metadata.resource_version = Some(self.writes.to_string());
        let name = lease.metadata.name.clone().expect("it has a name");
        self.leases.insert(name, lease.clone());
        Observation::Seen(Box::new(lease))
    }

    /// Returns the record of a holder that renews now.
    fn record(&self, holder: &str) -> Record {
        let at = Timestamp::from_second(self.writes).expect("it is in range");
        Record::new(&holder.into(), 15, at)
    }
}

/// A request of a member.
#[derive(Clone)]
enum Call {
    Create,
    /// It carries the resource version that was last seen.
    Renew(Option<String>, BTreeSet<Arc<str>>),
    TakeAway(Box<Object>),
    ClearAway(Box<Object>),
    Release,
}

/// A request that is on its way.
struct Pending {
    call: Call,
    sent: Instant,
    /// When it reaches the server.
    arrives: Instant,
    /// When its answer is back; `None` if it is lost.
    answered: Option<Instant>,
    answer: Option<Answer>,
}

#[derive(Clone)]
enum Answer {
    Held(Option<String>),
    Taken(Box<Object>),
    Failed,
    Lost,
}

/// The life of a member.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    Creating,
    Running,
    Stopping,
    Releasing,
    Over,
}

struct Member {
    name: Arc<str>,
    life: Life,
    state: MemberState,
    gate: Gate,
    calls: Vec<(ShardKey, Permit, Instant)>,
    /// What its watch will show, in order; `None` before it has listed.
    inbox: Option<VecDeque<(Instant, Observation)>>,
    /// When its next list reaches the server.
    lists_at: Instant,
    pending: Option<Pending>,
    version: Option<String>,
    suspended_until: Instant,
    cut_off_until: Instant,
    /// How fast its clock runs.
    rate: f64,
}

/// The ring, the server, and what goes wrong.
struct World {
    chance: fastrand::Rng,
    began: Instant,
    now: Instant,
    server: Server,
    members: Vec<Member>,
    created: u32,
    /// Requests whose sender does not wait for them any more.
    late: Vec<(Arc<str>, Call, Instant)>,
}

fn key(number: u32) -> ShardKey {
    let key = ObjectKey::cluster(&format!("order-{number}"));
    ShardKey::of_key(&Gvk::new("", "v1", "Order"), &key)
}

impl Member {
    /// Returns the time on its clock.
    fn clock(&self, began: Instant, now: Instant) -> Instant {
        began + (now - began).mul_f64(self.rate)
    }

    /// Returns whether it handles keys: what it writes from its deadline on is refused.
    fn leads(&self, clock: Instant) -> bool {
        let lives = matches!(self.life, Life::Running | Life::Stopping);
        lives && self.state.has_joined() && clock < self.state.deadline()
    }
}

impl World {
    fn new(seed: u64) -> Self {
        let now = Instant::now();
        Self {
            chance: fastrand::Rng::with_seed(seed),
            began: now,
            now,
            server: Server::default(),
            members: Vec::new(),
            created: 0,
            late: Vec::new(),
        }
    }

    /// Returns a random time of up to some seconds.
    fn within(&mut self, seconds: f64) -> Duration {
        Duration::from_secs_f64(self.chance.f64() * seconds)
    }

    fn add_member(&mut self) {
        self.created += 1;
        let name: Arc<str> = format!("m{:02}", self.created).into();
        let drain = self.chance.u32(0..12) * SECOND;
        let config = Sharding::new(Lease::new("shop")).drain_timeout(drain);
        // The lease duration is 1.5 times the renew deadline.
        let rate = 1.0 + 0.4 * self.chance.f64();
        self.members.push(Member {
            state: MemberState::new(Arc::clone(&name), &config, self.began),
            name,
            life: Life::Creating,
            gate: Gate::new(),
            calls: Vec::new(),
            inbox: None,
            lists_at: self.now,
            pending: None,
            version: None,
            suspended_until: self.now,
            cut_off_until: self.now,
            rate,
        });
    }

    /// Sends a request; it and its answer take their time, or are lost.
    fn send(&mut self, at: usize, call: Call) {
        let is_cut_off = self.members[at].cut_off_until > self.now;
        let (there, back) = (self.within(0.3), self.within(0.3));
        // A member may lose its lease by two slow requests, which must not happen right before the end.
        let is_slow = self.chance.u32(0..40) == 0 && self.now < self.began + FAULTS * TICK;
        let there = if is_slow { self.within(4.0) } else { there };
        let arrives = self.now + there;
        let is_lost = is_cut_off && self.chance.bool();
        let answered = (!is_cut_off).then_some(arrives + back);
        if is_lost {
            self.members[at].pending = Some(Pending {
                call,
                sent: self.now,
                arrives: self.now + 1000 * SECOND,
                answered: None,
                answer: None,
            });
            return;
        }
        self.members[at].pending = Some(Pending {
            call,
            sent: self.now,
            arrives,
            answered,
            answer: None,
        });
    }

    /// Carries a request out.
    fn serve(&mut self, name: &str, call: &Call) -> Answer {
        let found = self.server.leases.get(name).cloned();
        let is_mine = |lease: &Object| *Record::of(lease).holder == *name;
        match call {
            Call::Create if found.is_none() => {
                let new = self.server.record(name).create(name, "shops");
                let stored = self.server.store(labelled(new, "shop"));
                self.publish(&stored);
                Answer::Held(self.version_of(name))
            }
            // An earlier attempt has created it, so this one renews it.
            Call::Create => match found.filter(is_mine) {
                Some(lease) => self.renew(name, &lease, &BTreeSet::new()),
                None => Answer::Lost,
            },
            Call::Renew(version, acks) => {
                let Some(lease) = found.filter(is_mine) else {
                    return Answer::Lost;
                };
                if *version != lease.metadata.resource_version {
                    return Answer::Failed;
                }
                self.renew(name, &lease, acks)
            }
            Call::TakeAway(expired) => {
                let other = expired.metadata.name.clone().unwrap_or_default();
                let found = self.server.leases.get(&other).cloned();
                let Some(lease) = found.filter(|lease| is_same_state(lease, expired)) else {
                    return Answer::Failed;
                };
                let at = self.server.record("").acquired.expect("it has one");
                let released = Record::of(&lease).released(at).replace(&lease);
                let stored = self.server.store(released.clone());
                self.publish(&stored);
                Answer::Taken(Box::new(released))
            }
            Call::ClearAway(released) => {
                let other = released.metadata.name.clone().unwrap_or_default();
                let found = self.server.leases.get(&other);
                if found.is_some_and(|lease| is_same_state(lease, released)) {
                    self.server.leases.remove(&other);
                    self.publish(&Observation::Deleted(other));
                }
                Answer::Failed
            }
            Call::Release => {
                if let Some(lease) = found.filter(is_mine) {
                    let at = self.server.record("").acquired.expect("it has one");
                    let released = Record::of(&lease).released(at).replace(&lease);
                    let stored = self.server.store(released);
                    self.publish(&stored);
                }
                Answer::Lost
            }
        }
    }

    fn renew(&mut self, name: &str, lease: &Object, acks: &BTreeSet<Arc<str>>) -> Answer {
        let renewed = renewed(&self.server.record(name), lease, acks);
        let stored = self.server.store(renewed);
        self.publish(&stored);
        Answer::Held(self.version_of(name))
    }

    fn version_of(&self, name: &str) -> Option<String> {
        let lease = self.server.leases.get(name)?;
        lease.metadata.resource_version.clone()
    }

    /// Shows a change to all watches.
    fn publish(&mut self, observation: &Observation) {
        for at in 0..self.members.len() {
            let delay = self.within(0.5);
            let (now, member) = (self.now, &mut self.members[at]);
            let Some(inbox) = &mut member.inbox else {
                continue;
            };
            let last = inbox.back().map_or(now, |(shown, _)| *shown);
            inbox.push_back((last.max(now + delay), observation.clone()));
        }
    }

    /// Lists the leases for members whose watch is not open.
    fn list(&mut self) {
        for at in 0..self.members.len() {
            let delay = self.within(0.5);
            let (now, leases) = (self.now, &self.server.leases);
            let member = &mut self.members[at];
            let lists = member.inbox.is_none() && member.lists_at <= now;
            if lists && member.life != Life::Creating && member.cut_off_until <= now {
                let all = Observation::All(leases.values().cloned().collect());
                member.inbox = Some(VecDeque::from([(now + delay, all)]));
            }
        }
    }

    /// Lets requests arrive, and their answers come back.
    fn deliver(&mut self) {
        for (name, call, _) in self.take_late() {
            self.serve(&name, &call);
        }
        for at in 0..self.members.len() {
            let Some(mut pending) = self.members[at].pending.take() else {
                continue;
            };
            if pending.answer.is_none() && pending.arrives <= self.now {
                let name = Arc::clone(&self.members[at].name);
                pending.answer = Some(self.serve(&name, &pending.call));
            }
            self.members[at].pending = Some(pending);
        }
    }

    fn take_late(&mut self) -> Vec<(Arc<str>, Call, Instant)> {
        let now = self.now;
        let (due, late) = self
            .late
            .drain(..)
            .partition(|(_, _, arrives)| *arrives <= now);
        self.late = late;
        due
    }

    /// Processes the answer to a member's request; returns whether it still waits for one.
    fn receive(&mut self, at: usize) -> bool {
        let (began, now) = (self.began, self.now);
        let member = &mut self.members[at];
        let clock = member.clock(began, now);
        let Some(pending) = member.pending.take() else {
            return false;
        };
        let is_renewal = matches!(pending.call, Call::Renew(..));
        let gives_up = match pending.call {
            Call::Renew(..) => clock >= member.state.deadline() || now >= pending.sent + 5 * SECOND,
            Call::Create => now >= pending.sent + 5 * SECOND,
            _ => now >= pending.sent + 2 * SECOND,
        };
        let is_answered = pending.answered.is_some_and(|answered| answered <= now);
        if !is_answered && !gives_up {
            member.pending = Some(pending);
            return true;
        }
        let (call, sent) = (pending.call, member.clock(began, pending.sent));
        let answer = pending.answer.filter(|_| is_answered);
        if answer.is_none() && pending.arrives > now {
            let name = Arc::clone(&self.members[at].name);
            self.late.push((name, call.clone(), pending.arrives));
        }
        let member = &mut self.members[at];
        match (call, answer.unwrap_or(Answer::Failed)) {
            (Call::Create, Answer::Held(version)) => {
                member.version = version;
                if clock < sent + 10 * SECOND {
                    member.state.begin(sent, clock);
                    member.life = Life::Running;
                    (member.inbox, member.lists_at) = (None, now);
                }
            }
            (Call::Renew(..), Answer::Held(version)) => {
                member.version = version;
                member.state.renewed(sent, clock);
            }
            (Call::TakeAway(_), Answer::Taken(released)) => {
                let released = Observation::Seen(released);
                member.state.observed(released, clock);
            }
            (Call::TakeAway(_), _) => member.state.not_taken(clock),
            (Call::Release, _) | (Call::Create | Call::Renew(..), Answer::Lost) => {
                member.life = Life::Over;
            }
            _ if is_renewal => {
                // Its next attempt reads the lease before.
                let name = Arc::clone(&member.name);
                member.state.not_renewed(clock);
                let version = self.version_of(&name);
                self.members[at].version = version;
            }
            _ => {}
        }
        false
    }

    /// Lets a member take its steps.
    fn act(&mut self, at: usize) {
        while !self.receive(at) {
            let (began, now) = (self.began, self.now);
            let member = &mut self.members[at];
            let clock = member.clock(began, now);
            match member.life {
                Life::Over => return,
                Life::Creating => return self.send(at, Call::Create),
                Life::Releasing => return self.send(at, Call::Release),
                Life::Stopping if member.calls.is_empty() => {
                    member.gate.set(&Share::none());
                    member.life = Life::Releasing;
                    continue;
                }
                Life::Running | Life::Stopping => {}
            }
            let inbox = member.inbox.as_mut();
            let is_shown = |(shown, _): &(Instant, Observation)| *shown <= now;
            let shown = inbox.and_then(|inbox| {
                let is_due = inbox.front().is_some_and(is_shown);
                is_due.then(|| inbox.pop_front()).flatten()
            });
            if let Some((_, observation)) = shown {
                member.state.observed(observation, clock);
            }
            let is_drained = member.gate.is_drained();
            match member.state.next(clock, is_drained) {
                Step::Count(share) if member.state.has_joined() => {
                    member.gate.set(&share);
                }
                Step::Count(_) | Step::DropLost => {}
                Step::Join(share) => {
                    member.gate.set(&share);
                }
                Step::Revoke => member.gate.revoke(),
                Step::Renew => {
                    let version = member.version.clone();
                    let acks = member.state.acked().clone();
                    return self.send(at, Call::Renew(version, acks));
                }
                Step::TakeAway(expired) => return self.send(at, Call::TakeAway(expired)),
                Step::ClearAway(released) => return self.send(at, Call::ClearAway(released)),
                Step::Lost(_) => {
                    member.life = Life::Over;
                    return;
                }
                Step::Wait { until, for_calls } => {
                    assert!(
                        until > clock && !(for_calls && is_drained),
                        "it waits in vain"
                    );
                    let more = member.inbox.as_ref().and_then(VecDeque::front);
                    if !more.is_some_and(is_shown) {
                        return;
                    }
                }
            }
        }
    }

    /// Begins and ends calls of handlers.
    fn handle(&mut self, at: usize) {
        let (number, time) = (self.chance.u32(0..KEYS), self.within(10.0));
        let (began, now) = (self.began, self.now);
        let is_busy = self.chance.u32(0..4) == 0;
        let member = &mut self.members[at];
        let clock = member.clock(began, now);
        member.calls.retain(|(_, permit, ends)| {
            let is_revoked = permit.revoked().now_or_never().is_some();
            *ends > now && !is_revoked
        });
        if member.leads(clock) && member.life == Life::Running && is_busy {
            let permit = member.gate.enter(key(number));
            let call = permit.map(|permit| (key(number), permit, now + time));
            member.calls.extend(call);
        }
    }

    /// Checks that no key has two holders; returns how many have one.
    fn check(&self) -> u32 {
        let mut held = 0;
        for number in 0..KEYS {
            let key = key(number);
            let holders = self.members.iter().filter(|member| {
                let clock = member.clock(self.began, self.now);
                let has_call = member.calls.iter().any(|(of, ..)| *of == key);
                member.leads(clock) && (has_call || member.gate.share().holds(key))
            });
            let holders: Vec<_> = holders.map(|member| &*member.name).collect();
            let after = self.now - self.began;
            assert!(
                holders.len() < 2,
                "after {after:?} {holders:?} hold key {number}"
            );
            held += u32::from(holders.len() == 1);
        }
        held
    }

    /// Lets something go wrong.
    fn disturb(&mut self) {
        let count = self.members.len();
        let at = self.chance.usize(..count.max(1));
        let (short, long) = (self.within(6.0), self.within(25.0));
        let now = self.now;
        match self.chance.u32(0..200) {
            0..3 if count < 4 => self.add_member(),
            3 if count > 0 => self.kill(at),
            4 if count > 0 && self.members[at].life == Life::Running => {
                self.members[at].life = Life::Stopping;
            }
            5 if count > 0 => self.members[at].suspended_until = now + short,
            6 if count > 0 => self.members[at].suspended_until = now + long,
            7 if count > 0 => self.cut_off(at, now + short),
            8 if count > 0 => self.cut_off(at, now + long),
            9 if count > 0 => {
                // Its watch has ended.
                (self.members[at].inbox, self.members[at].lists_at) = (None, now + 2 * SECOND);
            }
            _ => {}
        }
    }

    /// Kills a member; a request that it has sent still arrives.
    fn kill(&mut self, at: usize) {
        let member = self.members.swap_remove(at);
        if let Some(pending) = member.pending
            && pending.answer.is_none()
        {
            self.late.push((member.name, pending.call, pending.arrives));
        }
    }

    fn cut_off(&mut self, at: usize, until: Instant) {
        let member = &mut self.members[at];
        member.cut_off_until = until;
        (member.inbox, member.lists_at) = (None, until);
    }

    fn tick(&mut self) -> u32 {
        self.now += TICK;
        self.list();
        self.deliver();
        for at in 0..self.members.len() {
            if self.members[at].suspended_until <= self.now {
                self.handle(at);
                self.act(at);
            }
        }
        self.members.retain(|member| member.life != Life::Over);
        self.check()
    }

    /// Runs the ring with faults, and then without.
    fn run(mut self) -> Self {
        for _ in 0..FAULTS {
            self.disturb();
            self.tick();
        }
        self.add_member();
        let mut held = 0;
        for _ in 0..REST {
            held = self.tick();
        }
        let state = |member: &Member| (Arc::clone(&member.name), member.state.has_joined());
        let states: Vec<_> = self.members.iter().map(state).collect();
        assert_eq!(held, KEYS, "at rest each key has a holder: {states:?}");
        self
    }
}

#[test]
fn no_key_has_two_holders_whatever_happens_to_members() {
    let first = fastrand::u64(..);
    for seed in first..first + 12 {
        println!("seed {seed}");
        // Members draw the times of their renewals from it.
        fastrand::seed(seed);
        World::new(seed).run();
    }
}
