//! Rings of replicas on the embedded cluster and its faults, in virtual time.

use std::time::Duration;

use http::StatusCode;
use kube::api::{DeleteParams, PostParams};
use lariat_cluster::faults::{Action, Refusal, Rule};
use lariat_lease::{Lease, RingMember, Sharding};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::bench::{Bench, SECOND};
use crate::ring_bench::{KEYS, Member, key, settled, shares, until_lost};

#[tokio::test(start_paused = true)]
async fn the_first_member_holds_everything_at_once() {
    let bench = Bench::new().await;
    let began = Instant::now();
    let one = bench.member("one");
    assert!(one.membership.acquired().await);
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(shares(&[&one]), [KEYS as usize]);
}

#[tokio::test(start_paused = true)]
async fn three_that_start_at_once_divide_the_keys() {
    let bench = Bench::new().await;
    let members = ["one", "two", "three"].map(|name| bench.member(name));
    let members: Vec<&Member> = members.iter().collect();
    assert!(settled(&members, 5 * SECOND).await < SECOND);
    sleep(60 * SECOND).await;
    let counts = shares(&members);
    assert!(
        counts.iter().all(|count| (60..140).contains(count)),
        "{counts:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn at_rest_a_member_sends_a_renewal_each_period_and_nothing_else() {
    let bench = Bench::new().await;
    let _members = bench.joined(["one", "two", "three"]).await;
    sleep(10 * SECOND).await;
    bench.cluster.journal().clear();
    sleep(60 * SECOND).await;
    for client in ["one", "two", "three"] {
        let sent = bench.cluster.journal().select().client(client).count();
        assert!((30..=31).contains(&sent), "{client} sent {sent} requests");
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_that_moves_waits_for_the_call_under_way() {
    let bench = Bench::new().await;
    let [one] = bench.joined(["one"]).await;
    let calls: Vec<_> = (0..KEYS)
        .map(|number| one.shards.enter(key(number)))
        .collect();
    let two = bench.member("two");
    sleep(10 * SECOND).await;
    assert!(!two.membership.leads(), "calls are under way");
    let kept = shares(&[&one])[0];
    assert!(kept < KEYS as usize, "what moves is not handled any more");
    drop(calls);
    settled(&[&one, &two], SECOND).await;
    assert_eq!(shares(&[&one])[0], kept, "nothing else moves");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_is_dropped_and_its_key_moves_after_a_margin() {
    let bench = Bench::new().await;
    let one = bench.member_with("one", |ring| ring.drain_timeout(7 * SECOND));
    assert!(one.membership.acquired().await);
    let calls: Vec<_> = (0..KEYS)
        .map(|number| one.shards.enter(key(number)))
        .collect();
    let began = Instant::now();
    let mut slow = JoinSet::new();
    for call in calls.into_iter().flatten() {
        slow.spawn(async move {
            call.revoked().await;
            Instant::now()
        });
    }
    let two = bench.member("two");
    let first = slow
        .join_next()
        .await
        .expect("there are calls")
        .expect("it ends");
    assert_eq!((first - began).as_secs(), 7);
    assert!(two.membership.acquired().await);
    let waited = began.elapsed();
    assert!(waited >= 12 * SECOND && waited < 13 * SECOND, "{waited:?}");
    let stay = shares(&[&one])[0];
    let mut dropped = 1;
    while slow.try_join_next().is_some() {
        dropped += 1;
    }
    assert_eq!(dropped, KEYS as usize - stay, "other calls go on");
}

#[tokio::test(start_paused = true)]
async fn a_drain_timeout_of_zero_hands_over_at_once_or_after_a_margin() {
    let bench = Bench::new().await;
    let one = bench.member_with("one", |ring| ring.drain_timeout(Duration::ZERO));
    assert!(one.membership.acquired().await);
    let began = Instant::now();
    let two = bench.member_with("two", |ring| ring.drain_timeout(Duration::ZERO));
    assert!(two.membership.acquired().await);
    assert!(began.elapsed() < SECOND, "nothing was under way");
    let mut slow = JoinSet::new();
    for call in (0..KEYS).filter_map(|number| one.shards.enter(key(number))) {
        slow.spawn(async move { call.revoked().await });
    }
    let began = Instant::now();
    let three = bench.member_with("three", |ring| ring.drain_timeout(Duration::ZERO));
    assert!(three.membership.acquired().await);
    let waited = began.elapsed();
    assert!(waited >= 5 * SECOND && waited < 6 * SECOND, "{waited:?}");
    assert!(slow.try_join_next().is_some(), "calls are dropped");
}

/// A hand-over that was interrupted after it had dropped calls did not wait for what they had sent.
#[tokio::test(start_paused = true)]
async fn a_hand_over_that_is_interrupted_keeps_the_margin_for_calls_that_were_dropped() {
    let bench = Bench::new().await;
    let one = bench.member_with("one", |ring| ring.drain_timeout(7 * SECOND));
    assert!(one.membership.acquired().await);
    let [_three] = bench.joined(["three"]).await;
    let mut slow = JoinSet::new();
    for call in (0..KEYS).filter_map(|number| one.shards.enter(key(number))) {
        slow.spawn(async move { call.revoked().await });
    }
    let began = Instant::now();
    let two = bench.member("two");
    slow.join_next()
        .await
        .expect("there are calls")
        .expect("it ends");
    assert_eq!(began.elapsed().as_secs(), 7);

    // The third has let the second in already, and does not notice that its lease is deleted.
    bench.cluster.faults().block_leases("three");
    let (leases, name) = (bench.leases(), bench.lease_of("three").await);
    let mut lease = leases.get(&name).await.expect("it is there");
    let deleted = leases.delete(&name, &DeleteParams::default()).await;
    deleted.expect("it is deleted");
    sleep(SECOND).await;
    lease.metadata.resource_version = None;
    lease.metadata.uid = None;
    let put_back = leases.create(&PostParams::default(), &lease).await;
    put_back.expect("it is put back");
    assert!(two.membership.acquired().await);
    let waited = began.elapsed();
    assert!(waited >= 12 * SECOND && waited < 13 * SECOND, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn keys_of_a_member_that_leaves_are_free_at_once() {
    let bench = Bench::new().await;
    let [one, mut two, three] = bench.joined(["one", "two", "three"]).await;
    assert!(two.stop().await.is_ok());
    assert!(settled(&[&one, &two, &three], SECOND).await < SECOND);
    assert_eq!(shares(&[&two]), [0]);
}

#[tokio::test(start_paused = true)]
async fn keys_of_a_member_that_dies_are_held_again_after_a_lease_duration() {
    let bench = Bench::new().await;
    let [one, two, three] = bench.joined(["one", "two", "three"]).await;
    drop(two);
    let took = settled(&[&one, &three], 30 * SECOND).await;
    assert!(took > 12 * SECOND && took < 16 * SECOND, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn leases_without_a_holder_are_cleared_away() {
    let bench = Bench::new().await;
    let [one, mut two, three] = bench.joined(["one", "two", "three"]).await;
    two.stop().await.unwrap();
    drop(three);
    sleep(60 * SECOND).await;
    let left = bench.lease_names().await;
    assert_eq!(left, [bench.lease_of("one").await]);
    assert_eq!(shares(&[&one]), [KEYS as usize]);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_deleted_by_hand_makes_no_two_holders() {
    let bench = Bench::new().await;
    let [one, mut two, three] = bench.joined(["one", "two", "three"]).await;
    // Its renewals do not arrive, so it does not notice.
    let silence = Rule::new(Action::NoAnswer).client("two");
    bench.cluster.faults().add(silence);
    let lease = bench.lease_of("two").await;
    let deleted = bench
        .leases()
        .delete(&lease, &DeleteParams::default())
        .await;
    deleted.expect("it is deleted");
    let four = bench.member("four");
    until_lost(&two, &[&one, &two, &three, &four]).await;
    settled(&[&one, &two, &three, &four], 31 * SECOND).await;
    let error = two.ended().await.expect_err("it is lost");
    assert!(
        error.to_string().contains("not renewed within 10s"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_member_that_is_cut_off_stops_before_others_begin() {
    let bench = Bench::new().await;
    let [one, two, three] = bench.joined(["one", "two", "three"]).await;
    let cut = Rule::new(Action::NoAnswer)
        .client("two")
        .for_time(60 * SECOND);
    bench.cluster.faults().add(cut);
    let began = Instant::now();
    until_lost(&two, &[&one, &two, &three]).await;
    assert!(began.elapsed() <= 10 * SECOND);
    settled(&[&one, &two, &three], 31 * SECOND - began.elapsed()).await;
}

#[tokio::test(start_paused = true)]
async fn one_that_joins_while_another_is_dead_waits_for_its_lease() {
    let bench = Bench::new().await;
    let [one] = bench.joined(["one"]).await;
    drop(one);
    let two = bench.member("two");
    let took = settled(&[&two], 31 * SECOND).await;
    assert!(took > 13 * SECOND && took < 18 * SECOND, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn one_that_dies_while_it_joins_gives_its_keys_back() {
    let bench = Bench::new().await;
    let [one] = bench.joined(["one"]).await;
    let call = (0..KEYS)
        .map(|number| one.shards.enter(key(number)))
        .collect::<Vec<_>>();
    let two = bench.member("two");
    sleep(SECOND).await;
    drop(two);
    let took = settled(&[&one], 31 * SECOND).await;
    assert!(took > 12 * SECOND && took < 16 * SECOND, "{took:?}");
    drop(call);
}

#[tokio::test(start_paused = true)]
async fn members_ride_out_a_server_that_is_away_for_less_than_the_renew_deadline() {
    let bench = Bench::new().await;
    let [one, two] = bench.joined(["one", "two"]).await;
    bench
        .cluster
        .faults()
        .add(unavailable().for_time(7 * SECOND));
    let began = Instant::now();
    while began.elapsed() < 40 * SECOND {
        assert_eq!(shares(&[&one, &two]).iter().sum::<usize>(), KEYS as usize);
        sleep(SECOND / 5).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_for_longer_ends_all_memberships_and_new_ones_begin() {
    let bench = Bench::new().await;
    let [mut one, mut two] = bench.joined(["one", "two"]).await;
    bench
        .cluster
        .faults()
        .add(unavailable().for_time(60 * SECOND));
    assert!(one.ended().await.is_err() && two.ended().await.is_err());
    let again = ["one", "two"].map(|name| bench.member(name));
    sleep(50 * SECOND).await;
    let again: Vec<&Member> = again.iter().collect();
    // The leases of before have to expire.
    settled(&again, 31 * SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_restored_from_a_backup_makes_no_two_holders() {
    let bench = Bench::new().await;
    let [one, two] = bench.joined(["one", "two"]).await;
    let backup = bench.cluster.snapshot();
    let [three] = bench.joined(["three"]).await;
    let lost = Rule::new(Action::NoAnswer)
        .client("three")
        .for_time(9 * SECOND);
    bench.cluster.faults().add(lost);
    bench.cluster.restore(&backup).await.expect("restored");
    // The lease of the third is gone, which it does not know yet.
    let four = bench.member("four");
    let members = [&one, &two, &three, &four];
    while three.membership.leads() || !four.membership.leads() {
        shares(&members);
        sleep(Duration::from_millis(20)).await;
    }
    settled(&members, SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn a_membership_that_is_suspended_is_over_when_it_goes_on() {
    let bench = Bench::new().await;
    let [one] = bench.joined(["one"]).await;
    let held = one.shards.enter(key(1)).is_some();
    assert!(held);
    // Nothing of this runtime runs meanwhile.
    tokio::time::advance(20 * SECOND).await;
    assert!(one.shards.enter(key(1)).is_none());
}

#[tokio::test(start_paused = true)]
async fn many_that_come_and_go_never_have_a_key_in_common() {
    let names: Vec<&'static str> = (0..12).map(|it| &*format!("m{it}").leak()).collect();
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut chance = fastrand::Rng::with_seed(seed);
    let bench = Bench::new().await;
    let mut members: Vec<Member> = Vec::new();
    let mut next = names.iter();
    for _ in 0..60 {
        match chance.u32(0..3) {
            0 if members.len() < 4 => members.extend(next.next().map(|name| bench.member(name))),
            1 if members.len() > 1 => drop(members.swap_remove(chance.usize(..members.len()))),
            2 if members.len() > 1 => {
                let place = chance.usize(..members.len());
                assert!(members[place].stop().await.is_ok());
                members.swap_remove(place);
            }
            _ => {}
        }
        let until = Instant::now() + chance.u32(1..6) * SECOND;
        while Instant::now() < until {
            shares(&members.iter().collect::<Vec<_>>());
            sleep(Duration::from_millis(50)).await;
        }
    }
    if members.is_empty() {
        members.push(bench.member("last"));
    }
    settled(&members.iter().collect::<Vec<_>>(), 31 * SECOND).await;
}

#[tokio::test]
async fn a_name_that_is_too_long_is_refused() {
    let bench = Bench::new().await;
    let ring = Sharding::new(Lease::new("a".repeat(55)));
    let error = RingMember::new(bench.client("one"), ring).expect_err("it is too long");
    assert!(error.to_string().contains("longer than 54"), "{error}");
}

fn unavailable() -> Rule {
    Rule::new(Action::Refuse(Refusal::new(
        StatusCode::SERVICE_UNAVAILABLE,
    )))
}

#[tokio::test(start_paused = true)]
async fn a_slow_take_away_costs_no_membership() {
    let bench = Bench::new().await;
    let [one, two, three] = bench.joined(["one", "two", "three"]).await;
    // Reads of other members' leases hang; the own lease is renewed without one.
    let slow = Rule::new(Action::NoAnswer).client("one").verb("get");
    bench.cluster.faults().add(slow);
    let slow = Rule::new(Action::NoAnswer).client("three").verb("get");
    bench.cluster.faults().add(slow.for_time(40 * SECOND));
    drop(two);
    let until = Instant::now() + 40 * SECOND;
    while Instant::now() < until {
        assert!(one.membership.leads() && three.membership.leads());
        sleep(SECOND / 10).await;
    }
    settled(&[&one, &three], 10 * SECOND).await;
}

/// A write that such a call has sent may still arrive.
#[tokio::test(start_paused = true)]
async fn a_member_that_stops_keeps_the_margin_for_calls_that_were_dropped() {
    let bench = Bench::new().await;
    let mut one = bench.member_with("one", |ring| ring.drain_timeout(7 * SECOND));
    assert!(one.membership.acquired().await);
    let mut slow = JoinSet::new();
    for call in (0..KEYS).filter_map(|number| one.shards.enter(key(number))) {
        slow.spawn(async move { call.revoked().await });
    }
    let began = Instant::now();
    let two = bench.member("two");
    let revoked = slow.join_next().await.expect("there are calls");
    revoked.expect("it ends");
    slow.shutdown().await;
    one.stop().await.expect("it was a member");
    assert!(two.membership.acquired().await);
    assert!(began.elapsed() >= 12 * SECOND, "{:?}", began.elapsed());
}
