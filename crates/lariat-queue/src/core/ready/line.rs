//! One level of the line: first come first served, or the groups in turn.

use std::collections::VecDeque;

use hashbrown::HashMap;

/// A slot in line with the number of its ticket.
pub(super) type Place = (u32, u32);

/// Places in the order in which they leave, valid and stale.
#[derive(Debug)]
pub(super) enum Line {
    Fifo(VecDeque<Place>),
    Fair(Groups),
}

/// A line per group; the groups take turns.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// The groups that have somebody in line, each once, whose turn it is first.
    turns: VecDeque<u64>,
    lines: HashMap<u64, VecDeque<Place>>,
    len: usize,
}

/// A line smaller than this is not worth shrinking, only to grow again.
const SHRINK_FROM: usize = 16 * 1024;

impl Line {
    pub(super) fn new(is_fair: bool) -> Self {
        match is_fair {
            true => Self::Fair(Groups::default()),
            false => Self::Fifo(VecDeque::new()),
        }
    }

    pub(super) fn push(&mut self, place: Place, group: u64) {
        match self {
            Self::Fifo(line) => line.push_back(place),
            Self::Fair(groups) => groups.push(place, group),
        }
    }

    /// Returns who is next.
    pub(super) fn front(&self) -> Option<Place> {
        match self {
            Self::Fifo(line) => line.front().copied(),
            Self::Fair(groups) => groups.lines.get(groups.turns.front()?)?.front().copied(),
        }
    }

    /// Lets the next one go; a stale place uses up nobody's turn.
    pub(super) fn pop_front(&mut self, is_stale: bool) {
        match self {
            Self::Fifo(line) => {
                line.pop_front();
                shrink(line);
            }
            Self::Fair(groups) => groups.pop_front(is_stale),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Fifo(line) => line.len(),
            Self::Fair(groups) => groups.len,
        }
    }

    pub(super) fn retain(&mut self, mut stays: impl FnMut(Place) -> bool) {
        match self {
            Self::Fifo(line) => {
                line.retain(|place| stays(*place));
                shrink(line);
            }
            Self::Fair(groups) => groups.retain(stays),
        }
    }
}

impl Groups {
    fn push(&mut self, place: Place, group: u64) {
        let line = self.lines.entry(group).or_default();
        if line.is_empty() {
            self.turns.push_back(group);
        }
        line.push_back(place);
        self.len += 1;
    }

    fn pop_front(&mut self, is_stale: bool) {
        let Some(group) = self.turns.front().copied() else {
            return;
        };
        let Some(line) = self.lines.get_mut(&group) else {
            return;
        };
        line.pop_front();
        shrink(line);
        self.len -= 1;
        if line.is_empty() {
            self.lines.remove(&group);
            self.turns.pop_front();
        } else if !is_stale {
            self.turns.rotate_left(1);
        }
    }

    fn retain(&mut self, mut stays: impl FnMut(Place) -> bool) {
        for line in self.lines.values_mut() {
            line.retain(|place| stays(*place));
            shrink(line);
        }
        self.lines.retain(|_, line| !line.is_empty());
        self.turns.retain(|group| self.lines.contains_key(group));
        self.len = self.lines.values().map(VecDeque::len).sum();
    }
}

#[cfg(test)]
impl Line {
    pub(super) fn room(&self) -> usize {
        match self {
            Self::Fifo(line) => line.capacity(),
            Self::Fair(groups) => groups.lines.values().map(VecDeque::capacity).sum(),
        }
    }
}

/// Gives memory back after a crowd has left; halving keeps the cost per place constant.
fn shrink(line: &mut VecDeque<Place>) {
    if line.capacity() > SHRINK_FROM && line.len() < line.capacity() / 8 {
        line.shrink_to(line.capacity() / 4);
    }
}
