//! Relists that a program asks for.

use std::collections::BTreeMap;

use lariat_core::Gvk;
use lariat_sim::internals::{ActivityKind, Event, IncarnationId, Moment, Rest};

use super::incarnations::Incarnations;
use super::requests::resource_of_list;
use super::{Check, Findings};
use crate::oracle::Oracle;

/// A kind that is to be listed again is.
///
/// `Informer::relist` returns true: at rest the cache has been read once more (`KindStatus::loads`) than at the time of
/// the request, by a list that was sent after it. A cache may go while its kind has no handler, and counts from zero
/// when it is made again, so such a kind is left out from then on.
#[derive(Default)]
pub(super) struct Relists {
    incarnations: Incarnations,
    /// The last request for each kind.
    asked: BTreeMap<(IncarnationId, Gvk), Asked>,
}

/// A request for a list.
struct Asked {
    /// How often the cache had been read.
    loads: u64,
    /// Whether a list was sent since.
    is_sent: bool,
}

impl Check for Relists {
    fn name(&self) -> &'static str {
        "a relist that was asked for comes"
    }

    fn saw(&mut self, _: &Oracle, moment: &Moment, event: &Event) -> Findings {
        self.incarnations.saw(moment, event);
        match event {
            Event::Acted(activity) => {
                if let ActivityKind::Relisted { kind, loads } = &activity.what {
                    let of = (activity.incarnation.clone(), kind.clone());
                    let (loads, is_sent) = (*loads, false);
                    self.asked.insert(of, Asked { loads, is_sent });
                }
                self.forget_unused(&activity.incarnation);
            }
            Event::Sent { what, .. } => {
                if let Some(resource) = resource_of_list(what) {
                    self.sent(&moment.actor, resource);
                }
            }
            Event::IncarnationEnded(incarnation) => {
                self.asked.retain(|(of, _), _| of != incarnation);
            }
            _ => {}
        }
        Vec::new()
    }

    fn at_rest(&mut self, _: &Oracle, rest: &Rest<'_>) -> Findings {
        let asked = self.asked.iter();
        let of_life = asked.filter(|((of, _), _)| of == rest.incarnation);
        let late = of_life.filter_map(|((_, kind), Asked { loads, is_sent })| {
            let cache = rest.caches.iter().find(|cache| cache.gvk == *kind)?;
            (cache.loads <= *loads || !is_sent).then(|| {
                let kind = kind.kind();
                format!("{kind} was to be listed again after {loads} lists, and was not")
            })
        });
        late.collect()
    }
}

impl Relists {
    fn sent(&mut self, process: &str, resource: &str) {
        for ((of, kind), asked) in &mut self.asked {
            // The plurals of the trial's kinds.
            let plural = format!("{}s", kind.kind().to_lowercase());
            asked.is_sent |= *of.process == *process && plural == resource;
        }
    }

    fn forget_unused(&mut self, incarnation: &IncarnationId) {
        let state = self.incarnations.of(incarnation);
        let has_handler =
            |kind: &Gvk| state.is_some_and(|state| state.handlers_of(kind).next().is_some());
        self.asked
            .retain(|(of, kind), _| of != incarnation || has_handler(kind));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::harness::{CheckHarness, handler, kind};

    fn relisted(harness: &mut CheckHarness<Relists>) -> usize {
        let (kind, loads) = (kind(), 2);
        harness.act(1, ActivityKind::Relisted { kind, loads });
        harness.check.asked.len()
    }

    #[test]
    fn a_request_counts_while_its_kind_has_a_handler() {
        let mut harness = CheckHarness::of(Relists::default());
        assert_eq!(relisted(&mut harness), 0);
        harness.registered("h", None);
        assert_eq!(relisted(&mut harness), 1);
        let (kind, name) = (kind(), handler("h").name);
        harness.act(2, ActivityKind::Deregistered { kind, name });
        assert_eq!(harness.check.asked.len(), 0);
    }

    #[test]
    fn a_list_counts_if_it_is_sent_after_the_request() {
        let mut harness = CheckHarness::of(Relists::default());
        harness.registered("h", None);
        let mut is_sent = |what: &str, again: bool| {
            if again {
                relisted(&mut harness);
            }
            let what = what.to_owned();
            harness.event(3, &Event::Sent { request: 1, what });
            harness.check.asked.values().all(|asked| asked.is_sent)
        };
        let list = "GET /api/v1/configmaps?limit=500";
        assert!(is_sent(list, true));
        assert!(!is_sent("GET /api/v1/secrets?limit=500", true));
        assert!(!is_sent("GET /api/v1/configmaps?watch=true", false));
        assert!(!is_sent(
            "GET /api/v1/configmaps?limit=500&continue=7",
            false
        ));
        assert!(is_sent(list, false));
    }
}
