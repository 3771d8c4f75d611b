//! The wall clock, which simulations and tests can replace.
//!
//! Lariat waits on tokio's clock, which tests can pause. The wall clock is for times that outlive a process: timestamps
//! that operators write into objects, and the expiry of credentials. Lariat reads it through [`now`]. Handlers that are
//! to run in simulations should do the same.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::time::SystemTime;

/// A function that returns the time.
type Clock = Rc<dyn Fn() -> SystemTime>;

thread_local! {
    /// The function behind [`now`] on this thread; `None` for the system's clock.
    static SIMULATED: RefCell<Option<Clock>> = const { RefCell::new(None) };
}

/// Returns the time of the wall clock, or of [`simulate`] on this thread.
///
/// As with [`SystemTime::now`], a later call may return an earlier time, because clocks can be set back.
///
/// # Panics
///
/// If the function given to [`simulate`] panics.
///
/// # Examples
///
/// ```
/// use lariat::core::clock;
/// use std::time::SystemTime;
///
/// assert!(clock::now() > SystemTime::UNIX_EPOCH);
/// ```
#[must_use]
pub fn now() -> SystemTime {
    // The function is called outside the borrow, because it may start or end a simulation.
    let simulated = SIMULATED.with_borrow(Clone::clone);
    simulated.map_or_else(system, |now| now())
}

/// Replaces the wall clock of this thread until the guard is dropped.
///
/// For simulations and tests. Every [`now`] on this thread calls the function; other threads keep their clock. A second
/// simulation on the same thread replaces the first until its guard is dropped. Guards must be dropped in the reverse
/// order of their creation, as local variables are. A guard that is dropped by a panic restores the clock too.
///
/// The function must not call [`crate::clock::now`], which would recurse endlessly.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use lariat::core::clock;
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

/// Returns whether the wall clock of this thread is simulated.
///
/// A simulation runs several programs in one process. Lariat checks this before it uses state of the whole process,
/// such as the factories that were started, and ignores that state in a simulation.
#[must_use]
pub fn is_simulated() -> bool {
    SIMULATED.with_borrow(Option::is_some)
}

/// A guard of a simulated wall clock; dropping it restores the previous clock.
///
/// Returned by [`simulate`].
#[must_use = "the clock is restored when this is dropped"]
pub struct Simulated {
    /// The previous clock of the thread.
    before: Option<Clock>,
}

impl Drop for Simulated {
    fn drop(&mut self) {
        let before = self.before.take();
        // This fails if the thread is ending and has destroyed its clock before the guard. Then there is nothing to
        // restore.
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

/// Returns the time of the system's clock.
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
        assert!(!is_simulated());
        let outer = simulate(|| at(1));
        let inner = simulate(|| at(2));
        assert_eq!(now(), at(2));
        drop(inner);
        assert!(is_simulated());
        assert_eq!(now(), at(1));
        drop(outer);
        assert!(!is_simulated());
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
