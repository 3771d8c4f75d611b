//! Relists that a program asks for.

use std::collections::BTreeMap;

use lariat_core::Gvk;

use super::incarnations::Incarnations;
use super::{Check, Findings, Rest};
use crate::activity::ActivityKind;
use crate::actors::IncarnationId;
use crate::event::{Event, Moment};
use crate::oracle::Oracle;

/// A kind that is to be listed again is.
///
/// `Informer::relist` returns true: at rest the cache has been read once more (`KindStatus::loads`) than at the time of
/// the request. A cache may go while its kind has no handler, and counts from zero when it is made again, so such a
/// kind is left out from then on.
#[derive(Default)]
pub(super) struct Relists {
    incarnations: Incarnations,
    /// How often the cache of each kind had been read at the last request.
    asked: BTreeMap<(IncarnationId, Gvk), u64>,
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
                    self.asked.insert(of, *loads);
                }
                self.forget_unused(&activity.incarnation);
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
        let late = of_life.filter_map(|((_, kind), loads)| {
            let cache = rest.caches.iter().find(|cache| cache.gvk == *kind)?;
            (cache.loads <= *loads).then(|| {
                let kind = kind.kind();
                format!("{kind} was to be listed again after {loads} lists, and was not")
            })
        });
        late.collect()
    }
}

impl Relists {
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
}
