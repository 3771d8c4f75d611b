//! Paths from a variable to a part of its value.

use std::cell::RefCell;
use std::rc::Rc;

/// A path into the schema of a variable.
///
/// It is the name, then fields, `@items`, `@keys` and `@values`. Like slices in Go, two paths that are appended to the
/// same one share its memory within its capacity, and the later step overwrites the earlier one. So in `self.l.all(x, x.a.all(y, y in x.b))` the server takes the size of `x.b` for that
/// of `x.a` when it is done with the loop. What is refused depends on it.
#[derive(Debug, Clone, Default)]
pub(super) struct Path<'t> {
    memory: Option<Rc<Memory<'t>>>,
    length: usize,
}

#[derive(Debug)]
struct Memory<'t> {
    steps: RefCell<Vec<&'t str>>,
    capacity: usize,
}

impl<'t> Path<'t> {
    /// Creates the path of a variable.
    pub(super) fn of(name: &'t str) -> Self {
        Self::default().then(name)
    }

    /// Returns the path that goes on with a step.
    // `append`, whose capacity doubles.
    pub(super) fn then(&self, step: &'t str) -> Self {
        let length = self.length + 1;
        if let Some(memory) = self.memory.as_ref().filter(|m| self.length < m.capacity) {
            let mut steps = memory.steps.borrow_mut();
            // Longer paths keep what they have behind it.
            match steps.get_mut(self.length) {
                Some(shared) => *shared = step,
                None => steps.push(step),
            }
            let memory = Some(Rc::clone(memory));
            return Self { memory, length };
        }
        self.copied(step)
    }

    /// Returns the path that goes on with a step, in memory of its own.
    pub(super) fn copied(&self, step: &'t str) -> Self {
        let mut steps = self.steps();
        let capacity = (2 * steps.len()).max(1);
        steps.push(step);
        let steps = RefCell::new(steps);
        Self {
            length: self.length + 1,
            memory: Some(Rc::new(Memory { steps, capacity })),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub(super) fn steps(&self) -> Vec<&'t str> {
        let Some(memory) = &self.memory else {
            return Vec::new();
        };
        memory.steps.borrow()[..self.length].to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_share_memory_while_there_is_room() {
        let item = Path::of("self").then("list").then("@items");
        let (first, second) = (item.then("a"), item.then("b"));
        assert_eq!(first.steps(), ["self", "list", "@items", "b"]);
        let deep = second.then("@items");
        assert_eq!(item.then("c").steps(), ["self", "list", "@items", "c"]);
        assert_eq!(deep.steps(), ["self", "list", "@items", "b", "@items"]);
        let long = deep.then("x").then("y");
        assert_eq!(deep.then("z").steps().last(), Some(&"z"));
        assert_eq!(long.steps()[3..], ["b", "@items", "z", "y"]);
    }
}
