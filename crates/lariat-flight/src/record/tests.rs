//! Every record comes back as it was written.

use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::*;
use crate::code::{Decoder, Encoder, Field};

/// What records are made of, drawn at random; names are few, so that they repeat.
#[derive(Debug, Clone)]
pub(crate) struct Draw {
    which: Index,
    name: &'static str,
    other: &'static str,
    number: u64,
    short: u32,
    flag: bool,
    nanos: u64,
    lanes: Vec<u32>,
    end: End,
}

const NAMES: [&str; 6] = [
    "",
    "shop/web-0",
    "shop/web-1",
    "ConfigMap",
    "log",
    "schön/ß",
];

pub(crate) fn draw() -> impl Strategy<Value = Draw> {
    let names = (select(NAMES.to_vec()), select(NAMES.to_vec()));
    let numbers = (any::<u64>(), any::<u32>(), any::<bool>(), any::<u64>());
    let lanes = prop::collection::vec(any::<u32>(), 0..7);
    let end = select(end::tests::all());
    (any::<Index>(), names, numbers, lanes, end).prop_map(
        |(which, (name, other), (number, short, flag, nanos), lanes, end)| Draw {
            which,
            name,
            other,
            number,
            short,
            flag,
            nanos,
            lanes,
            end,
        },
    )
}

impl Draw {
    fn code<T: Copy>(&self, all: &[T]) -> T {
        all[self.short as usize % all.len()]
    }

    fn version(&self) -> Version<'static> {
        if self.flag {
            Version::Number(self.number)
        } else {
            Version::Text(self.other)
        }
    }

    /// Makes one of all records there are.
    pub(crate) fn record(&self) -> Record<'static> {
        let all = self.records();
        self.which.get(&all).clone()
    }

    fn records(&self) -> Vec<Record<'static>> {
        let (kind, number) = (self.name, self.short);
        let factory = Record::Factory {
            step: self.code(FactoryStep::ALL),
            workers: self.flag.then_some(number),
        };
        let reflected = self.reflected().into_iter().map(|what| Record::Reflector {
            kind,
            reflector: number,
            what,
        });
        let queued = self.queued().into_iter().map(|what| Record::Queue {
            kind,
            queue: number,
            what,
        });
        let stored = self
            .stored()
            .into_iter()
            .map(|what| Record::Store { kind, what });
        let controlled = self
            .controlled()
            .into_iter()
            .map(|what| Record::Controller { kind, what });
        let all = reflected.chain(queued).chain(stored).chain(controlled);
        all.chain([factory]).collect()
    }

    fn reflected(&self) -> Vec<Reflected<'static>> {
        let (version, flag) = (self.version(), self.flag);
        let delay = Duration::from_nanos(self.nanos);
        vec![
            Reflected::Began {
                namespace: self.other,
                streams: flag,
                verified: !flag,
                since: flag.then_some(version),
            },
            Reflected::ListBegan { whole: flag },
            Reflected::StreamBegan {},
            Reflected::WatchBegan { since: version },
            Reflected::CheckBegan { since: version },
            Reflected::Page {
                items: self.short,
                version,
                more: flag,
            },
            Reflected::Line {
                line: self.code(LineType::ALL),
                key: self.other,
                uid: self.short,
                version,
            },
            Reflected::Bookmark {
                version,
                ends_initial: flag,
            },
            Reflected::Loaded {
                version,
                objects: self.short,
            },
            Reflected::Doubted {},
            Reflected::Ended {
                stage: self.code(Stage::ALL),
                end: self.end,
                received: flag,
                lasted: delay,
                state: self.lanes.iter().copied().collect(),
            },
            Reflected::Decided {
                next: self.code(NextStep::ALL),
                delay,
                jitter: self.number,
            },
            Reflected::Stopped {},
            Reflected::Unreadable {},
        ]
    }

    fn stored(&self) -> Vec<Stored<'static>> {
        let (key, version) = (self.other, self.version());
        vec![
            Stored::Changed {
                change: self.code(ChangeType::ALL),
                key,
                version,
            },
            Stored::Wrote { key, version },
            Stored::Removed { key },
        ]
    }

    fn queued(&self) -> Vec<Queued<'static>> {
        let (key, flag) = (self.other, self.flag);
        let delay = Duration::from_nanos(self.nanos);
        let (lanes, priority) = (Lanes::from_slice(&self.lanes), self.code(Urgency::ALL));
        let verdict = |lane: &u32| LaneVerdict {
            lane: *lane,
            what: VerdictType::Again,
            after: delay,
            priority: flag.then_some(priority),
        };
        let done = LaneVerdict {
            lane: 1,
            what: VerdictType::Done,
            after: Duration::ZERO,
            priority: None,
        };
        vec![
            Queued::Opened {
                threshold: delay,
                share: self.short,
                fair: flag,
            },
            Queued::Added {
                key,
                lanes: lanes.clone(),
                after: delay,
                kept: flag,
                priority,
                failures: self.short,
                limited: flag.then_some(delay),
                group: flag.then_some(self.number),
                cause: self.code(CauseType::ALL),
                by: self.name,
                version: self.version(),
            },
            Queued::Released {},
            Queued::Emptied {
                threshold: delay,
                share: self.short,
                fair: flag,
            },
            Queued::Dequeued {
                key,
                lanes,
                priority,
                waited: delay,
            },
            Queued::Finished {
                key,
                verdicts: self.lanes.iter().map(verdict).chain([done]).collect(),
            },
            Queued::GivenBack { key },
            Queued::DrainBegan {},
            Queued::DrainEnded {},
            Queued::ShutDown { now: flag },
            Queued::Reopened {},
            Queued::Forgot {
                key,
                lane: self.short,
            },
        ]
    }

    fn controlled(&self) -> Vec<Controlled<'static>> {
        let (key, handler, run) = (self.other, self.name, self.number);
        let took = Duration::from_nanos(self.nanos);
        let lane = self.short;
        vec![
            Controlled::Registered { lane, handler },
            Controlled::Deregistered { lane, handler },
            Controlled::Started { workers: lane },
            Controlled::Stopped {},
            Controlled::CallBegan {
                run,
                key,
                handler,
                lane,
                attempt: self.short,
            },
            Controlled::CallEnded {
                run,
                key,
                handler,
                end: self.code(CallEnd::ALL),
                took,
                again: self.flag.then_some(took),
            },
        ]
    }
}

proptest! {
    #[test]
    fn records_come_back_as_they_were_written(draws in prop::collection::vec(draw(), 1..20)) {
        let records: Vec<_> = draws.iter().flat_map(Draw::records).collect();
        let mut encoder = Encoder::default();
        records.iter().for_each(|record| record.put(&mut encoder));
        let bytes = encoder.take();
        let mut decoder = Decoder::new(&bytes);
        for record in &records {
            let read = Record::get(&mut decoder);
            prop_assert_eq!(read.as_ref(), Some(record));
        }
        prop_assert!(decoder.is_empty());
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut decoder = Decoder::new(&bytes);
        while Record::get(&mut decoder).is_some() {}
    }
}
