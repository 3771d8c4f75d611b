//! The workers that wait for a key.
//!
//! All of this happens under the lock of the queue, so there is nothing in it to race: a worker joins and looks at the queue in
//! one step, and a change of the queue wakes a worker in the same step.

use std::task::Waker;

/// The workers that wait. The one that joined last is woken first, as a rule: its caches are warm.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    /// By number; the numbers in `vacant` are free.
    all: Vec<Waiter>,
    vacant: Vec<u32>,
    /// The numbers of those that were not woken, the last to join last.
    idle: Vec<u32>,
    /// How many were woken and have not left.
    woken: usize,
}

#[derive(Debug)]
struct Waiter {
    /// Where in `idle` the waiter is; none once it was woken.
    place: Option<u32>,
    waker: Option<Waker>,
}

impl Waiters {
    /// Adds a waiter, and returns its number.
    pub(crate) fn join(&mut self) -> u32 {
        let waiter = Waiter {
            place: Some(self.idle.len() as u32),
            waker: None,
        };
        let number = match self.vacant.pop() {
            Some(number) => {
                self.all[number as usize] = waiter;
                number
            }
            None => {
                self.all.push(waiter);
                self.all.len() as u32 - 1
            }
        };
        self.idle.push(number);
        number
    }

    /// Returns whether a waiter was woken; otherwise this waker will be.
    pub(crate) fn poll(&mut self, number: u32, waker: &Waker) -> bool {
        let waiter = &mut self.all[number as usize];
        if waiter.place.is_none() {
            return true;
        }
        match &mut waiter.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        false
    }

    /// Removes a waiter; returns whether it was woken.
    pub(crate) fn leave(&mut self, number: u32) -> bool {
        self.vacant.push(number);
        let waiter = &mut self.all[number as usize];
        waiter.waker = None;
        let Some(place) = waiter.place else {
            self.woken -= 1;
            return true;
        };
        self.remove_idle(place);
        false
    }

    /// Wakes one for `keys` keys, if those that are on their way are not enough; spares `last` while there are others.
    ///
    /// It looks at the queue, and wakes the next if there is more to do. It may not come for long, if the task that polls it is
    /// busy, so no waiter is relied on for more than one key.
    pub(crate) fn wake_for(&mut self, keys: usize, last: Option<u32>) -> Option<Waker> {
        if self.woken >= keys {
            return None;
        }
        let mut number = *self.idle.last()?;
        if Some(number) == last
            && let [.., other, _] = self.idle[..]
        {
            number = other;
        }
        self.wake(number)
    }

    /// Wakes one, unless it was woken already.
    pub(crate) fn wake(&mut self, number: u32) -> Option<Waker> {
        let waiter = &mut self.all[number as usize];
        let place = waiter.place.take()?;
        let waker = waiter.waker.take();
        self.woken += 1;
        self.remove_idle(place);
        waker
    }

    pub(crate) fn wake_all(&mut self) -> Vec<Waker> {
        let idle = std::mem::take(&mut self.idle);
        self.woken += idle.len();
        let wakers = idle.into_iter().filter_map(|number| {
            let waiter = &mut self.all[number as usize];
            waiter.place = None;
            waiter.waker.take()
        });
        wakers.collect()
    }

    fn remove_idle(&mut self, place: u32) {
        self.idle.swap_remove(place as usize);
        if let Some(moved) = self.idle.get(place as usize) {
            self.all[*moved as usize].place = Some(place);
        }
    }
}
