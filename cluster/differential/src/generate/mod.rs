//! Random sequences, the same for the same seed.

mod garbage;
mod lists;
mod mutate;
mod objects;
mod patches;
mod protocol;
mod reads;
mod script;
mod subresources;

use fastrand::Rng;

use crate::kinds::Kind;
use crate::step::Sequence;
use script::Script;

/// How often a kind is chosen, beside 1.
const WEIGHTS: [(&str, u32); 11] = [
    ("Pod", 8),
    ("Deployment", 6),
    ("Service", 6),
    ("Rich", 8),
    ("Plain", 3),
    ("ConfigMap", 4),
    ("Secret", 2),
    ("StatefulSet", 2),
    ("Job", 2),
    ("Ingress", 2),
    ("Node", 2),
];

/// Makes sequences.
#[derive(Debug)]
pub struct Generator {
    seed: u64,
    kinds: Vec<Kind>,
    /// The sum of the weights up to each kind, and the kind's place.
    weights: Vec<(u32, usize)>,
}

impl Generator {
    /// Makes a generator of sequences about kinds, of which there must be one.
    #[must_use]
    pub fn new(seed: u64, kinds: Vec<Kind>) -> Self {
        let weight = |kind: &Kind| {
            let found = WEIGHTS.iter().find(|(name, _)| *name == kind.kind);
            found.map_or(1, |(_, weight)| *weight)
        };
        let mut sum = 0;
        let weights = kinds.iter().enumerate().map(|(place, kind)| {
            sum += weight(kind);
            (sum, place)
        });
        Self {
            weights: weights.collect(),
            seed,
            kinds,
        }
    }

    /// Makes the sequence of a number.
    #[must_use]
    pub fn sequence(&self, number: usize) -> Sequence {
        // Odd constants without a pattern: neighbouring numbers and seeds get unrelated random numbers.
        let stride = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut random = Rng::with_seed(self.seed.wrapping_mul(0xd134_2543_de82_ef95) ^ stride);
        let kind = self.kind(&mut random);
        let mut script = Script::new(&mut random, kind);
        match script.random.u32(..100) {
            // The arms overlap: for such kinds dry runs take the place of lives.
            0..80 if kind.is_worked_on() => objects::dry(&mut script),
            0..55 => objects::live(&mut script),
            55..80 => objects::dry(&mut script),
            80..91 => lists::sequence(&mut script),
            91..97 => protocol::requests(&mut script),
            _ => garbage::owners(&mut script),
        }
        Sequence {
            number,
            reusable: !matches!(kind.kind.as_str(), "LimitRange" | "ResourceQuota"),
            steps: script.steps,
            cleanup: script.cleanup,
        }
    }

    fn kind(&self, random: &mut Rng) -> &Kind {
        let sum = self.weights.last().map_or(1, |(sum, _)| *sum);
        let drawn = random.u32(..sum);
        let place = self.weights.partition_point(|(sum, _)| *sum <= drawn);
        &self.kinds[self.weights[place].1]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::kinds;

    #[test]
    fn a_seed_makes_the_same_sequences_again() {
        let resources = json!([
            {"name": "pods", "kind": "Pod", "namespaced": true},
            {"name": "pods/status", "kind": "Pod", "namespaced": true},
            {"name": "nodes", "kind": "Node"},
        ]);
        let kinds = kinds(&[json!({"groupVersion": "v1", "resources": resources})]).unwrap();
        assert_eq!(kinds.len(), 2);
        let written = |seed: u64| -> String {
            let generator = Generator::new(seed, kinds.clone());
            let sequences: Vec<Sequence> =
                (0..50).map(|number| generator.sequence(number)).collect();
            serde_json::to_string(&sequences).unwrap()
        };
        assert_eq!(written(1), written(1));
        assert_ne!(written(1), written(2));
    }
}
