//! The state of an object before and after an apply.

use std::sync::Arc;

use lariat_cache::CachedObject;
use lariat_core::{ResourceVersion, Uid};

use super::error::ObjectError;
use super::meta::{Existing, Partial};
use super::report::Action;
use super::resolve::Target;
use super::send::parse;
use super::staged::object_of;
use crate::diff::Diff;

/// The object that exists under the name of a wanted one, if any.
pub(super) struct Present {
    pub(super) existing: Option<Existing>,
    /// Its cached state, if it was read from the cache.
    pub(super) cached: Option<Arc<CachedObject>>,
    /// Its JSON, if it was read from the API server.
    pub(super) live: Option<String>,
}

impl Present {
    /// Reads an answer of the API server.
    pub(super) fn read(json: String) -> Result<Self, ObjectError> {
        let Partial { metadata } = parse("get", &json)?;
        Ok(Self {
            existing: Some(Existing::from(&metadata)),
            cached: None,
            live: Some(json),
        })
    }
}

/// The answer of the API server to an apply.
pub(super) struct Answer {
    pub(super) uid: Uid,
    pub(super) version: ResourceVersion,
    pub(super) json: String,
}

/// What was done to an object, and its state.
pub(super) struct Done {
    pub(super) action: Action,
    /// The state on the server; `None` if a replacement was only planned.
    pub(super) object: Option<Arc<CachedObject>>,
    /// Whether the state was read from the cache.
    pub(super) is_cached: bool,
    /// What a planned write would change.
    pub(super) diff: Diff,
}

impl Done {
    pub(super) fn of(action: Action) -> Self {
        Self {
            action,
            object: None,
            is_cached: false,
            diff: Diff::default(),
        }
    }

    pub(super) fn unchanged(present: Present, target: &Target) -> Self {
        let live = present.live.and_then(|live| object_of(target, &live));
        Self {
            action: Action::Unchanged,
            is_cached: live.is_none(),
            object: live.or(present.cached),
            diff: Diff::default(),
        }
    }
}

impl Answer {
    pub(super) fn read(verb: &'static str, json: String) -> Result<Self, ObjectError> {
        let Partial { metadata } = parse(verb, &json)?;
        Ok(Self {
            uid: Uid::new(&metadata.uid),
            version: ResourceVersion::new(&metadata.resource_version),
            json,
        })
    }

    pub(super) fn done(&self, action: Action, target: &Target) -> Done {
        Done {
            action,
            object: object_of(target, &self.json),
            is_cached: false,
            diff: Diff::default(),
        }
    }
}
