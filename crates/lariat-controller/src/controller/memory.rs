//! How much a controller remembers.

use lariat_core::Remembered;

use super::core::ControllerCore;
use super::failures::KEYS;

impl ControllerCore {
    /// Adds how much is remembered, of a controller whose kind has so many relations.
    pub(crate) fn remembered(&self, relations: usize, all: &mut Vec<Remembered>) {
        let kind = self.gvk();
        let queue = self.queue.memory();
        let queue = queue.map(|of| Remembered::new(of.what, of.entries, of.bound).of(kind));
        all.extend(queue);
        let lanes = self.lanes().list();
        let failing = (self.failures().keys(), KEYS * lanes.len());
        let [runs, older] = self.history().remembered();
        let related = self.related.lock();
        let joined = (related.len(), relations);
        let aside = sum(related.iter().map(|joined| joined.aside()));
        drop(related);
        let sizes = [
            ("runs", runs),
            ("older runs", older),
            ("failing keys", failing),
            ("suspects", self.watchman().remembered()),
            ("keys in line", sum(lanes.iter().map(|lane| lane.in_line()))),
            ("kept places", sum(lanes.iter().map(|lane| lane.kept()))),
            ("relations", joined),
            ("owners set aside", aside),
        ];
        let sizes = sizes.into_iter();
        all.extend(
            sizes.map(|(what, (entries, bound))| Remembered::new(what, entries, bound).of(kind)),
        );
    }
}

/// Adds entries and bounds up.
fn sum(sizes: impl Iterator<Item = (usize, usize)>) -> (usize, usize) {
    sizes.fold((0, 0), |(entries, bound), (more, most)| {
        (entries + more, bound + most)
    })
}
