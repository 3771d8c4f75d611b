//! The wall clock, which simulations and tests replace.
//!
//! The libraries wait by tokio's clock, and that can be paused. The wall clock is for what outlives a process: the
//! times that operators write into objects, and the times at which credentials expire. They read it here, and so should
//! handlers that want to be simulated.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::time::SystemTime;

type Clock = Rc<dyn Fn() -> SystemTime>;

thread_local! {
    /// What [`now`] calls on this thread; without it, the system is asked.
    static SIMULATED: RefCell<Option<Clock>> = const { RefCell::new(None) };
}

/// Returns what time it is: the system's, or that of [`simulate`] on this thread.
///
/// As with [`SystemTime::now`], a later call may return an earlier time, because clocks are set back.
///
/// # Panics
///
/// Panics where the function given to [`simulate`] does.
#[must_use]
pub fn now() -> SystemTime {
    // The function is called outside of the borrow: it may begin or end a simulation.
    let simulated = SIMULATED.with_borrow(Clone::clone);
    simulated.map_or_else(system, |now| now())
}

/// Replaces the wall clock of this thread until the guard is dropped.
///
/// Meant for simulations and tests. Every [`now`] on this thread calls `now`; other threads keep their clock. A second
/// simulation on the same thread takes the place of the first until its guard is dropped, so guards are dropped in the
/// reverse order of their making, as variables of a block are. A guard that is dropped by a panic restores, too.
///
/// `now` must not call [`crate::clock::now`], which would call it in turn without end.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use lariat_core::clock;
///
/// let noon = SystemTime::UNIX_EPOCH + Duration::from_secs(12 * 3600);
/// let simulated = clock::simulate(move || noon);
/// assert_eq!(clock::now(), noon);
/// drop(simulated);
/// assert!(clock::now() > noon);
/// ```
pub fn simulate(now: impl Fn() -> SystemTime + 'static) -> Simulated {
    let before = SIMULATED.replace(Some(Rc::new(now)));
    Simulated { before }
}

/// A simulated wall clock of one thread, from [`simulate`]. Dropping it restores the clock that was there before.
#[must_use = "the clock is restored when this is dropped"]
pub struct Simulated {
    before: Option<Clock>,
}

impl Drop for Simulated {
    fn drop(&mut self) {
        let before = self.before.take();
        // It fails where the thread ends and has destroyed the clock before the guard, which leaves nothing to restore.
        let ended = SIMULATED.try_with(|simulated| simulated.replace(before));
        drop(ended);
    }
}

impl fmt::Debug for Simulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulated")
            .field("nested", &self.before.is_some())
            .finish()
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "the one place where the wall clock is read"
)]
fn system() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::thread;
    use std::time::Duration;

    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn a_simulated_clock_is_asked_each_time() {
        let time = Rc::new(Cell::new(at(1)));
        let read = Rc::clone(&time);
        let _simulated = simulate(move || read.get());
        assert_eq!(now(), at(1));
        time.set(at(90));
        assert_eq!(now(), at(90));
        time.set(at(7));
        assert_eq!(now(), at(7), "clocks are set back");
    }

    #[test]
    fn the_clock_before_a_simulation_is_restored() {
        let outer = simulate(|| at(1));
        let inner = simulate(|| at(2));
        assert_eq!(now(), at(2));
        drop(inner);
        assert_eq!(now(), at(1));
        drop(outer);
        assert!(now() > at(2), "the system's, which is past 1970");
    }

    #[test]
    fn a_panic_restores_the_clock() {
        let _outer = simulate(|| at(1));
        let panicked = catch_unwind(|| {
            let _inner = simulate(|| at(2));
            panic!("in a simulation");
        });
        assert!(panicked.is_err());
        assert_eq!(now(), at(1));
    }

    #[test]
    fn a_clock_that_panics_can_be_replaced() {
        let broken = simulate(|| panic!("no time"));
        assert!(catch_unwind(AssertUnwindSafe(now)).is_err());
        drop(broken);
        let _simulated = simulate(|| at(3));
        assert_eq!(now(), at(3));
    }

    #[test]
    fn other_threads_keep_their_clock() {
        let _simulated = simulate(|| at(1));
        let there = thread::spawn(now).join().unwrap();
        assert!(there > at(1));
    }
}
