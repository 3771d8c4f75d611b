//! Limits on the bytes of answers that clients have not read yet: in total, and per user.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::status::Refusal;
use crate::access::User;
use crate::read::{ByteLimit, Room};

/// The largest sizes of answers, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bytes {
    pub(super) of_list: u64,
    pub(super) of_user: u64,
    pub(super) of_all: u64,
}

impl Bytes {
    /// Returns the limits of a service, which has one user if it is open to everyone.
    pub(super) fn of_one_user(self, is_open: bool) -> Self {
        let of_user = if is_open { self.of_all } else { self.of_user };
        Self { of_user, ..self }
    }
}

/// The bytes of all answers that are held.
#[derive(Debug, Clone)]
pub(super) struct ByteRoom {
    limits: Bytes,
    held: Arc<Mutex<Held>>,
}

#[derive(Debug, Default)]
struct Held {
    all: u64,
    /// The bytes of each user, by name; never zero.
    users: HashMap<String, u64>,
}

/// The bytes of one answer, which are held until this is dropped.
#[derive(Debug)]
pub(super) struct AnswerBytes {
    room: ByteRoom,
    user: String,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    bytes: u64,
    /// The limit that was reached, if there was no room.
    full: Option<Full>,
}

#[derive(Debug, Clone, Copy)]
enum Full {
    User(u64),
    All(u64),
}

impl ByteRoom {
    pub(super) fn new(limits: Bytes) -> Self {
        Self {
            limits,
            held: Arc::default(),
        }
    }

    /// Returns an answer of a user that has no bytes yet.
    ///
    /// Users are identified by their names: other properties of a user may differ from token to token.
    pub(super) fn answer(&self, user: &User) -> Arc<AnswerBytes> {
        Arc::new(AnswerBytes {
            room: self.clone(),
            user: user.name().to_owned(),
            taken: Mutex::default(),
        })
    }

    /// Returns the limit that an answer of this size exceeds, added to other answers.
    ///
    /// While no other answer is held, none exceeds a limit, however large it is.
    fn full(&self, of_user: u64, of_all: u64, bytes: u64) -> Option<Full> {
        let exceeds = |held: u64, limit| held > 0 && held.saturating_add(bytes) > limit;
        if exceeds(of_user, self.limits.of_user) {
            return Some(Full::User(self.limits.of_user));
        }
        exceeds(of_all, self.limits.of_all).then_some(Full::All(self.limits.of_all))
    }
}

impl Held {
    fn of(&self, user: &str) -> u64 {
        self.users.get(user).copied().unwrap_or_default()
    }

    fn replace(&mut self, user: &str, before: u64, now: u64) {
        self.all = self.all - before + now;
        match self.of(user) - before + now {
            0 => drop(self.users.remove(user)),
            bytes => drop(self.users.insert(user.to_owned(), bytes)),
        }
    }
}

impl AnswerBytes {
    /// Returns the limit of the answer.
    pub(super) fn limit(self: &Arc<Self>) -> ByteLimit {
        ByteLimit {
            most: self.room.limits.of_list,
            room: Arc::clone(self) as Arc<dyn Room>,
        }
    }

    /// Returns the refusal of the answer, if there was no room for it.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        let full = self.taken.lock().full;
        full.map(|full| match full {
            Full::User(limit) => Refusal::full_user(limit),
            Full::All(limit) => Refusal::full(limit),
        })
    }
}

impl Room for AnswerBytes {
    fn take(&self, bytes: u64) -> bool {
        let mut taken = self.taken.lock();
        let mut held = self.room.held.lock();
        let (of_user, of_all) = (held.of(&self.user) - taken.bytes, held.all - taken.bytes);
        taken.full = self.room.full(of_user, of_all, bytes);
        if taken.full.is_none() {
            held.replace(&self.user, taken.bytes, bytes);
            taken.bytes = bytes;
        }
        taken.full.is_none()
    }
}

impl Drop for AnswerBytes {
    fn drop(&mut self) {
        let bytes = self.taken.get_mut().bytes;
        self.room.held.lock().replace(&self.user, bytes, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room() -> ByteRoom {
        ByteRoom::new(Bytes {
            of_list: 10,
            of_user: 20,
            of_all: 50,
        })
    }

    #[test]
    fn answers_are_held_within_limits_of_users_and_of_all() {
        let room = room();
        let answers = |name: &str| {
            let user = User::new(name);
            [room.answer(&user), room.answer(&user), room.answer(&user)]
        };
        let (jane, joe, jim) = (answers("jane"), answers("joe"), answers("jim"));
        assert!(jane[0].take(10) && jane[1].take(10) && !jane[2].take(1));
        let refused = jane[2].refusal().unwrap().status().to_string();
        assert!(refused.contains("your limit is 20 bytes"), "{refused}");
        assert!(joe[0].take(20) && jim[0].take(10) && !jim[1].take(1));
        let refused = jim[1].refusal().unwrap().status().to_string();
        assert!(refused.contains("the limit is 50 bytes"), "{refused}");
        drop(joe);
        assert!(jim[1].take(10));
        // Instead of those taken before.
        assert!(jim[1].take(5) && jim[2].take(5));
        assert_eq!(room.held.lock().all, 40);
        drop((jane, jim));
        let held = room.held.lock();
        assert!(held.all == 0 && held.users.is_empty(), "{held:?}");
    }

    #[test]
    fn a_single_answer_has_room_however_large() {
        let room = room();
        let one = room.answer(&User::new("jane"));
        assert!(one.take(1_000));
        assert!(!room.answer(&User::new("jane")).take(1));
        drop(one);
        assert!(room.answer(&User::new("jane")).take(1));
    }
}
