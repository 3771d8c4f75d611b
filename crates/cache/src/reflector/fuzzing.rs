//! Entry points for the fuzzer in `fuzz/`: the reflector's parsers without a server.
//!
//! This is not public API: it exists with the feature `fuzzing` only, and may change at any time.

use lariat_core::{Gvk, ManagedFields, RawObject, ResourceVersion};

use super::intake::Intake;
use super::page::{self, Page};
use super::stream::{LineForm, Lines, WatchEvent};
use crate::store::Content;

/// A line of a watch, with its object parsed.
#[derive(Debug)]
pub enum Event {
    /// The object was added.
    Added(RawObject),
    /// The object was modified.
    Modified(RawObject),
    /// The object was deleted.
    Deleted(RawObject),
    /// A bookmark.
    Bookmark {
        /// Its version.
        version: ResourceVersion,
        /// Whether it ends the initial objects.
        ends_initial: bool,
    },
    /// The text of an error event.
    Error(String),
}

/// A page of a list, with its objects parsed.
#[derive(Debug)]
pub struct ListPage {
    /// The version of the list.
    pub version: ResourceVersion,
    /// The token of the next page.
    pub continue_token: Option<String>,
    /// How many objects follow.
    pub remaining: Option<u64>,
    /// The objects, or the error of one that cannot be parsed.
    pub items: Vec<Result<RawObject, String>>,
}

/// Splits a chunked stream into lines; returns them and the length of the rest.
#[must_use]
pub fn lines(chunks: &[&[u8]]) -> (Vec<Vec<u8>>, usize) {
    let (mut lines, mut read) = (Lines::default(), Vec::new());
    for chunk in chunks {
        if lines.push(chunk).is_err() {
            break;
        }
        while let Some(line) = lines.next() {
            read.push(line.to_vec());
        }
    }
    (read, lines.len())
}

/// Parses a line of a watch as the reflector does once it knows the form of lines.
///
/// # Errors
///
/// Returns what is wrong with the line.
pub fn event(line: &[u8], gvk: &Gvk) -> Result<Event, String> {
    let mut form = LineForm::default();
    let first = form.read(line);
    let parsed = if form == LineForm::Other {
        first
    } else {
        LineForm::Usual.read(line)
    };
    let outcome = parsed.and_then(|event| read(event, gvk));
    match (outcome, WatchEvent::unusual(line)) {
        (Err(_), Some(event)) => read(event, gvk),
        (outcome, _) => outcome,
    }
}

fn read(event: WatchEvent<'_>, gvk: &Gvk) -> Result<Event, String> {
    let object = |json| intake(gvk).read(json).map_err(|error| error.to_string());
    Ok(match event {
        WatchEvent::Added(json) => Event::Added(object(json)?),
        WatchEvent::Modified(json) => Event::Modified(object(json)?),
        WatchEvent::Deleted(json) => Event::Deleted(object(json)?),
        WatchEvent::Bookmark {
            version,
            ends_initial,
        } => Event::Bookmark {
            version,
            ends_initial,
        },
        WatchEvent::Error(error) => Event::Error(error.to_string()),
    })
}

/// Parses a page of a list as the reflector does.
///
/// # Errors
///
/// Returns what is wrong with the page.
pub fn list_page(json: &[u8], gvk: &Gvk) -> Result<ListPage, String> {
    let json = page::valid(json.to_vec());
    let page = Page::parse(&json).map_err(|error| error.to_string())?;
    let mut intake = intake(gvk);
    let items = page.items.into_iter().map(|item| {
        let object = intake.read_item(item);
        object.map_err(|error| error.to_string())
    });
    Ok(ListPage {
        items: items.collect(),
        version: page.version,
        continue_token: page.continue_token,
        remaining: page.remaining,
    })
}

fn intake(gvk: &Gvk) -> Intake {
    Intake::new(gvk.clone(), Content::Whole, ManagedFields::Cut, None)
}
