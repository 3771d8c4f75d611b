//! The target `kubeconfig` over random changes of its seeds, without a fuzzer.

use std::fs;
use std::path::Path;

use fastrand::Rng;
use lariat_fuzz::target;

/// How many inputs there are in a run.
const INPUTS: u64 = 3_000;

#[test]
fn changed_kubeconfigs_hold() {
    let target = target("kubeconfig").expect("there is such a target");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let entries = fs::read_dir(folder.join("corpus/kubeconfig")).expect("it has seeds");
    let mut seeds: Vec<_> = entries
        .map(|entry| entry.expect("it is readable").path())
        .collect();
    seeds.sort();
    let seeds: Vec<Vec<u8>> = seeds
        .iter()
        .map(|path| fs::read(path).expect("it is readable"))
        .collect();
    // The words of the dictionary, as libFuzzer inserts them.
    let words = fs::read_to_string(folder.join("dictionaries/kubeconfig")).expect("it has words");
    let words: Vec<&str> = words
        .lines()
        .map(|line| line.trim_matches('"').trim_end_matches("\\x0a"))
        .collect();
    let first = fastrand::u64(..1 << 40);
    for seed in first..first + INPUTS {
        let rng = &mut Rng::with_seed(seed);
        let mut input = seeds[rng.usize(..seeds.len())].clone();
        for _ in 0..rng.usize(1..6) {
            change(rng, &mut input, &seeds, &words);
        }
        println!("seed {seed}: {:?}", String::from_utf8_lossy(&input));
        (target.run)(&input);
    }
}

fn change(rng: &mut Rng, input: &mut Vec<u8>, seeds: &[Vec<u8>], words: &[&str]) {
    let at = rng.usize(..=input.len());
    let end = (at + rng.usize(..20)).min(input.len());
    match rng.u32(..6) {
        0 => drop(input.drain(at..end)),
        1 => input.insert(at, rng.u8(..)),
        2 => drop(input.splice(at..end, words[rng.usize(..words.len())].bytes())),
        3 => {
            let part = input[at..end].to_vec();
            drop(input.splice(at..at, part));
        }
        4 => {
            let other = &seeds[rng.usize(..seeds.len())];
            drop(input.splice(at.., other[rng.usize(..=other.len())..].iter().copied()));
        }
        _ => {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << rng.u32(..8);
            }
        }
    }
}
