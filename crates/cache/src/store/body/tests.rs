//! Bodies in every form.

use super::*;
use crate::store::body::{Codec, SAMPLES};

fn json(number: usize) -> Box<[u8]> {
    let node = number % 7;
    format!(
        r#"{{"metadata":{{"name":"pod-{number}","uid":"{:032x}"}},"spec":{{"nodeName":"node-{node}",
        "containers":[{{"name":"main","image":"registry.example/app:1.2","resources":{{}}}}]}}}}"#,
        number * 7_919
    )
    .into_bytes()
    .into()
}

fn train(codec: &mut Codec, samples: &[Box<[u8]>]) -> bool {
    let training = codec.training().unwrap();
    codec.adopt(training, training.train(samples))
}

fn samples() -> Vec<Box<[u8]>> {
    (0..SAMPLES).map(json).collect()
}

#[test]
fn what_is_packed_comes_out_again() {
    let mut codec = Codec::default();
    assert!(train(&mut codec, &samples()));
    for number in 1_000..1_100 {
        let body = codec.body(json(number));
        assert!(body.is_packed() && body.len() < body.json_len() / 2);
        assert_eq!(*body.json().unwrap(), *json(number));
    }
}

#[test]
fn small_kinds_stay_plain_until_they_have_grown() {
    let codec = Codec::default();
    assert!(!codec.wants_samples(1_000_000));
    assert!(codec.wants_samples(1_100_000));
    assert!(!codec.body(json(1)).is_packed());
}

#[test]
fn what_does_not_become_smaller_is_kept_as_it_is() {
    let random = |_| -> Box<[u8]> { (0..400).map(|_| fastrand::u8(..)).collect() };
    let samples: Vec<Box<[u8]>> = (0..SAMPLES).map(random).collect();
    let mut codec = Codec::default();
    assert!(!train(&mut codec, &samples));
    assert!(!codec.wants_samples(usize::MAX), "it does not try again");
    assert!(!codec.body(samples[0].clone()).is_packed());
}

#[test]
fn too_few_samples_are_no_dictionary() {
    let mut codec = Codec::default();
    codec.set_storage(Storage::Compressed);
    assert!(!train(&mut codec, &[json(1)]));
}

#[test]
fn plain_and_decoded_kinds_do_not_learn() {
    for storage in [Storage::Plain, Storage::Decoded] {
        let mut codec = Codec::default();
        codec.set_storage(storage);
        assert!(!codec.wants_samples(usize::MAX));
    }
}

#[test]
fn what_was_learned_of_metadata_is_forgotten_when_content_comes_and_the_reverse() {
    let mut codec = Codec::default();
    codec.expect(true);
    assert!(train(&mut codec, &samples()));
    assert!(codec.training().is_none());
    codec.expect(true);
    assert!(codec.bytes() > 0, "the same again changes nothing");
    codec.expect(false);
    assert_eq!(codec.bytes(), 0);
    // What does not become smaller as content may do so as metadata.
    let sample = |_| -> Box<[u8]> { (0..400).map(|_| fastrand::u8(..)).collect() };
    let random: Vec<Box<[u8]>> = (0..SAMPLES).map(sample).collect();
    assert!(!train(&mut codec, &random));
    codec.expect(true);
    assert!(codec.training().is_some());
}

#[test]
fn what_was_learned_for_another_form_is_not_adopted() {
    let mut codec = Codec::default();
    let training = codec.training().unwrap();
    codec.expect(true);
    assert!(!codec.adopt(training, training.train(&samples())));
    assert_eq!(codec.bytes(), 0);
}
