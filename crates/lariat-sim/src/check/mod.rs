//! The checkers: what must hold, on the way and at rest.
//!
//! Each guarantee is one checker. Most look at events as they happen; what can only be said when faults have stopped and
//! nothing is under way is looked at once, at rest.

mod calls;
mod memory;
mod states;
mod wanted;

use std::sync::Arc;

use lariat_cache::KindStatus;
use lariat_controller::{ControllerStatus, SharedControllerFactory};

use crate::event::{Event, Moment};
use crate::oracle::Oracle;

/// What a checker found, in words.
pub(crate) type Findings = Vec<String>;

/// One thing that must hold.
pub(crate) trait Check: Send {
    /// Returns its name, as violations and `docs/simulator.md` have it.
    fn name(&self) -> &'static str;

    /// Looks at an event; the oracle knows it already.
    fn saw(&mut self, _oracle: &Oracle, _moment: &Moment, _event: &Event) -> Findings {
        Vec::new()
    }

    /// Looks at a process when faults have stopped and nothing is under way.
    fn at_rest(&mut self, _oracle: &Oracle, _rest: &Rest<'_>) -> Findings {
        Vec::new()
    }
}

/// A living process at rest.
pub(crate) struct Rest<'a> {
    pub(crate) process: &'a Arc<str>,
    pub(crate) life: u32,
    pub(crate) factories: &'a [SharedControllerFactory],
    pub(crate) controllers: &'a [ControllerStatus],
    pub(crate) caches: &'a [KindStatus],
}

/// All checkers of a run.
pub(crate) struct Checks(Vec<Box<dyn Check>>);

impl Checks {
    pub(crate) fn all() -> Self {
        Self(vec![
            Box::<calls::OneWorker>::default(),
            Box::<calls::LastCall>::default(),
            Box::<states::TrueStates>::default(),
            Box::<states::Forward>::default(),
            Box::<states::OwnWrites>::default(),
            Box::<states::Subscribers>::default(),
            Box::<states::Caches>::default(),
            Box::<memory::Memory>::default(),
        ])
    }

    pub(crate) fn saw(
        &mut self,
        oracle: &Oracle,
        moment: &Moment,
        event: &Event,
    ) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        for check in &mut self.0 {
            let name = check.name();
            found.extend(
                check
                    .saw(oracle, moment, event)
                    .into_iter()
                    .map(|what| (name, what)),
            );
        }
        found
    }

    pub(crate) fn at_rest(
        &mut self,
        oracle: &Oracle,
        rest: &Rest<'_>,
    ) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        for check in &mut self.0 {
            let name = check.name();
            found.extend(
                check
                    .at_rest(oracle, rest)
                    .into_iter()
                    .map(|what| (name, what)),
            );
        }
        found
    }
}
