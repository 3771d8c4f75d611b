//! Streams: whole, cut off, changed, and mixed from two.

use std::io::{self, Read, Write};

use lariat_seal::{Context, Keyring, SealError};

use crate::keyring;

const PART: usize = 64 * 1024;
const HEAD: usize = 17;
/// A full part with its length and tag.
const STORED: usize = 4 + PART + 16;

fn text(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at / 7) as u8).collect()
}

fn sealed(keyring: &Keyring, context: &Context, text: &[u8]) -> Vec<u8> {
    let writer = keyring.seal_stream(context, Vec::new());
    let mut writer = writer.expect("there are random numbers");
    for piece in text.chunks(10_007) {
        writer.write_all(piece).expect("a vector takes everything");
        writer.flush().expect("a vector takes everything");
    }
    writer.finish().expect("a vector takes everything")
}

fn opened(keyring: &Keyring, context: &Context, file: &[u8]) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let reader = keyring.open_stream(context, file);
    reader.map_err(io::Error::other)?.read_to_end(&mut text)?;
    Ok(text)
}

#[tokio::test]
async fn a_stream_of_any_length_opens_as_it_was_written() {
    let (keyring, context) = (keyring().await, Context::new("a"));
    for length in [0, 1, PART - 1, PART, PART + 1, 2 * PART, 3 * PART + 5] {
        let text = text(length);
        let file = sealed(&keyring, &context, &text);
        assert_eq!(opened(&keyring, &context, &file).unwrap(), text);
        assert_eq!(
            Keyring::data_key_of(&file).unwrap(),
            keyring.current_data_key()
        );
    }
}

#[tokio::test]
async fn a_stream_that_is_cut_off_anywhere_fails_at_its_end() {
    let (keyring, context) = (keyring().await, Context::new("a"));
    let file = sealed(&keyring, &context, &text(2 * PART + 100));
    let ends = [HEAD, HEAD + STORED, HEAD + 2 * STORED];
    let cuts = (0..file.len()).step_by(997).chain(ends);
    for cut in cuts.chain(file.len() - 20..file.len()) {
        assert!(
            opened(&keyring, &context, &file[..cut]).is_err(),
            "cut at {cut}"
        );
    }
    let longer = [&file[..], b"x"].concat();
    assert!(opened(&keyring, &context, &longer).is_err());
}

#[tokio::test]
async fn every_flipped_bit_of_a_stream_is_noticed() {
    let (keyring, context) = (keyring().await, Context::new("a"));
    let file = sealed(&keyring, &context, b"some text");
    for bit in 0..file.len() * 8 {
        let mut flipped = file.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(opened(&keyring, &context, &flipped).is_err(), "bit {bit}");
    }
}

#[tokio::test]
async fn parts_in_another_order_left_out_or_of_another_stream_are_noticed() {
    let (keyring, context) = (keyring().await, Context::new("a"));
    let text = text(3 * PART + 10);
    let file = sealed(&keyring, &context, &text);
    let other = sealed(&keyring, &context, &text);
    let part = |file: &[u8], number: usize| {
        let at = HEAD + number * STORED;
        file[at..(at + STORED).min(file.len())].to_vec()
    };
    let join = |parts: [Vec<u8>; 4]| [file[..HEAD].to_vec(), parts.concat()].concat();
    let [a, b, c, d] = [0, 1, 2, 3].map(|number| part(&file, number));
    assert_eq!(join([a.clone(), b.clone(), c.clone(), d.clone()]), file);
    let wrong = [
        join([b.clone(), a.clone(), c.clone(), d.clone()]),
        join([a.clone(), c, Vec::new(), d.clone()]),
        join([a.clone(), b, part(&other, 2), d]),
        join([a, Vec::new(), Vec::new(), Vec::new()]),
    ];
    for file in wrong {
        assert!(opened(&keyring, &context, &file).is_err());
    }
}

#[tokio::test]
async fn a_part_in_the_middle_is_not_taken_for_the_last_nor_the_last_for_one_in_the_middle() {
    let (keyring, context) = (keyring().await, Context::new("a"));
    let file = sealed(&keyring, &context, &text(2 * PART));
    let mut early = file[..HEAD + STORED].to_vec();
    early[HEAD + 3] ^= 0x80;
    assert!(opened(&keyring, &context, &early).is_err());
    let mut late = file.clone();
    late[HEAD + STORED + 3] ^= 0x80;
    let mut reader = keyring.open_stream(&context, &late[..]).unwrap();
    let mut text = Vec::new();
    assert!(reader.read_to_end(&mut text).is_err());
    assert_eq!(text.len(), PART, "the last part is not returned");
}

#[tokio::test]
async fn a_stream_does_not_open_with_another_context_or_as_a_value() {
    let (keyring, context) = (keyring().await, Context::new("a"));
    let file = sealed(&keyring, &context, b"some text");
    assert!(opened(&keyring, &Context::new("b"), &file).is_err());
    assert!(matches!(
        keyring.open(&context, &file),
        Err(SealError::Malformed(_))
    ));
    let value = keyring.seal(&context, b"some text").unwrap();
    let reader = keyring.open_stream(&context, &value[..]);
    assert!(matches!(reader, Err(SealError::UnknownFormat(1))));
}

#[tokio::test]
async fn what_was_not_finished_does_not_open() {
    let (keyring, context) = (keyring().await, Context::new("a"));
    let mut file = Vec::new();
    let mut writer = keyring.seal_stream(&context, &mut file).unwrap();
    writer.write_all(&text(3 * PART)).unwrap();
    drop(writer);
    assert!(file.len() > 2 * PART);
    assert!(opened(&keyring, &context, &file).is_err());
}

#[tokio::test]
async fn a_reader_that_has_failed_goes_on_failing() {
    let (keyring, context) = (keyring().await, Context::new("a"));
    let mut file = sealed(&keyring, &context, &text(2 * PART));
    file[HEAD + STORED + 100] ^= 1;
    let mut reader = keyring.open_stream(&context, &file[..]).unwrap();
    let mut first = vec![0; PART];
    reader.read_exact(&mut first).unwrap();
    for _ in 0..3 {
        let error = reader.read(&mut [0; 10]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(error.get_ref().unwrap().is::<SealError>());
    }
}

/// Writes a number of bytes, and fails then.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = bytes.len().min(self.0);
        self.0 -= written;
        match written {
            0 => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(written),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_writer_that_has_failed_does_not_go_on() {
    let (keyring, context) = (keyring().await, Context::new("a"));
    for room in [0, 10, HEAD + 2, PART, PART + 100] {
        let mut writer = keyring.seal_stream(&context, Full(room)).unwrap();
        let error = writer.write_all(&text(3 * PART)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(writer.write_all(&text(PART)).is_err());
        assert!(writer.finish().is_err());
    }
}
