//! The workers that wait for something to do.
//!
//! All of this happens under the lock of the queue, so there is nothing in it to race: a worker sits
//! down and looks at the queue in one step, and whoever changes the queue calls in the same step.

use std::task::Waker;

/// Seats of waiting workers. The one that sat down last is called first, as a rule: its caches are
/// warm, and those that are not needed sleep on.
#[derive(Debug, Default)]
pub(crate) struct Sleepers {
    seats: Vec<Seat>,
    vacant: Vec<u32>,
    /// Seats of those who were not called, the last to sit down last.
    idle: Vec<u32>,
    /// How many were called and have not risen.
    called: usize,
}

#[derive(Debug)]
struct Seat {
    /// Where in `idle` the seat is; `None` once it was called.
    place: Option<u32>,
    waker: Option<Waker>,
}

impl Sleepers {
    /// Takes a seat.
    pub(crate) fn sit(&mut self) -> u32 {
        let seat = Seat {
            place: Some(self.idle.len() as u32),
            waker: None,
        };
        let number = match self.vacant.pop() {
            Some(number) => {
                self.seats[number as usize] = seat;
                number
            }
            None => {
                self.seats.push(seat);
                self.seats.len() as u32 - 1
            }
        };
        self.idle.push(number);
        number
    }

    /// Returns whether a seat was called; otherwise its waker will be woken when it is.
    pub(crate) fn poll(&mut self, seat: u32, waker: &Waker) -> bool {
        let seat = &mut self.seats[seat as usize];
        if seat.place.is_none() {
            return true;
        }
        match &mut seat.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        false
    }

    /// Gives a seat up; tells whether it had been called.
    pub(crate) fn rise(&mut self, seat: u32) -> bool {
        self.vacant.push(seat);
        let given_up = &mut self.seats[seat as usize];
        given_up.waker = None;
        let Some(place) = given_up.place else {
            self.called -= 1;
            return true;
        };
        self.leave_idle(place);
        false
    }

    /// Calls one worker to `keys` keys, if those who are on their way are not enough: it will look at
    /// the queue, and call another if there is more to do. Spares `last` as long as there are others.
    ///
    /// One that was called may not come for long, if what polls it has something else to do; so nobody
    /// relies on one call for more than one key.
    pub(crate) fn call(&mut self, keys: usize, last: Option<u32>) -> Option<Waker> {
        if self.called >= keys {
            return None;
        }
        let mut seat = *self.idle.last()?;
        if Some(seat) == last
            && let [.., other, _] = self.idle[..]
        {
            seat = other;
        }
        self.call_seat(seat)
    }

    /// Calls the worker in a seat, unless it was called already.
    pub(crate) fn call_seat(&mut self, seat: u32) -> Option<Waker> {
        let called = &mut self.seats[seat as usize];
        let place = called.place.take()?;
        let waker = called.waker.take();
        self.called += 1;
        self.leave_idle(place);
        waker
    }

    /// Calls everybody.
    pub(crate) fn call_all(&mut self) -> Vec<Waker> {
        let idle = std::mem::take(&mut self.idle);
        self.called += idle.len();
        let wakers = idle.into_iter().filter_map(|seat| {
            let seat = &mut self.seats[seat as usize];
            seat.place = None;
            seat.waker.take()
        });
        wakers.collect()
    }

    fn leave_idle(&mut self, place: u32) {
        self.idle.swap_remove(place as usize);
        if let Some(moved) = self.idle.get(place as usize) {
            self.seats[*moved as usize].place = Some(place);
        }
    }
}
