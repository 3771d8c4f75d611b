//! Bodies in every form.

use super::*;

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

fn samples() -> Vec<Box<[u8]>> {
    (0..SAMPLES).map(json).collect()
}

#[test]
fn what_is_packed_comes_out_again() {
    let mut codec = Codec::default();
    assert!(codec.learn(&samples()));
    for number in 1_000..1_100 {
        let body = codec.body(json(number), false);
        assert!(body.is_packed() && body.len() < body.json_len() / 2);
        assert_eq!(*body.json().unwrap(), *json(number));
    }
}

#[test]
fn small_kinds_stay_plain_until_they_have_grown() {
    let codec = Codec::default();
    assert!(!codec.wants_samples(1_000_000));
    assert!(codec.wants_samples(1_100_000));
    assert!(!codec.body(json(1), false).is_packed());
}

#[test]
fn what_does_not_become_smaller_is_kept_as_it_is() {
    let random = |_| -> Box<[u8]> { (0..400).map(|_| fastrand::u8(..)).collect() };
    let samples: Vec<Box<[u8]>> = (0..SAMPLES).map(random).collect();
    let mut codec = Codec::default();
    assert!(!codec.learn(&samples));
    assert!(!codec.wants_samples(usize::MAX), "it does not try again");
    assert!(!codec.body(samples[0].clone(), false).is_packed());
}

#[test]
fn too_few_samples_are_no_dictionary() {
    let mut codec = Codec::default();
    codec.set_storage(Storage::Compressed);
    assert!(!codec.learn(&[json(1)]));
}

#[test]
fn plain_and_decoded_kinds_do_not_learn() {
    for storage in [Storage::Plain, Storage::Decoded] {
        let mut codec = Codec::default();
        codec.set_storage(storage);
        assert!(!codec.wants_samples(usize::MAX));
    }
}
