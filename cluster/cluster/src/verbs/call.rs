//! A request about objects of one resource.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bytes::Bytes;
use lariat_apimachinery::go_text::quoted;
use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::{Object, metadata_text};

use crate::access::User;
use crate::conversion;
use crate::fault::Action;
use crate::journal::Mark;
use crate::rules::Fault;
use crate::server::Server;
use crate::status::{ApiError, Warnings};
use crate::store::Stored;
use crate::strategy::Part;
use crate::wire::query::Query;
use crate::wire::route::Target;

/// A request about objects of one resource.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) server: Arc<Server>,
    pub(crate) resource: Arc<Resource>,
    pub(crate) target: Target,
    pub(crate) query: Query,
    /// The fault that applies to this request.
    pub(crate) fault: Option<Fault>,
    pub(crate) content_type: String,
    pub(crate) user_agent: String,
    /// The user who sent it.
    pub(crate) user: User,
    /// Its position in the journal.
    pub(crate) mark: Option<Mark>,
    /// The warnings that the client gets beside the answer.
    pub(crate) warnings: Warnings,
    /// Whether the sent content has lists or maps without items, which reading it drops.
    ///
    /// For kinds of [`Generation::ContentAsSent`](lariat_apimachinery::kinds::Generation::ContentAsSent) each such
    /// write raises the generation. Of a Pod it is only the overhead that counts.
    pub(crate) has_empty: AtomicBool,
    pub(crate) body: Bytes,
}

/// The media type of strategic merge patches.
pub(super) const STRATEGIC: &str = "application/strategic-merge-patch+json";

impl Call {
    /// Returns the content type without its parameters.
    pub(super) fn media_type(&self) -> &str {
        let media_type = self.content_type.split(';').next();
        media_type.unwrap_or_default().trim()
    }

    /// Returns the media type of an object, in lower case; that of a patch is compared as it is.
    ///
    /// As `mime.ParseMediaType`, it does not read parameters without a value.
    pub(super) fn object_type(&self) -> Cow<'_, str> {
        let mut parts = self.content_type.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default();
        let is_malformed = media_type.is_empty() && !self.content_type.is_empty();
        if is_malformed || parts.any(|part| !part.is_empty() && !part.contains('=')) {
            return "malformed".into();
        }
        if media_type.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return media_type.to_ascii_lowercase().into();
        }
        media_type.into()
    }

    /// Returns whether the body is an object in JSON.
    pub(super) fn sends_json(&self) -> bool {
        matches!(&*self.object_type(), "" | "application/json")
    }

    pub(super) fn is_strategic(&self) -> bool {
        self.media_type() == STRATEGIC
    }

    /// Returns the action of the fault that applies to the request, if any.
    pub(crate) fn fault(&self) -> Option<&Action> {
        self.fault.as_ref().map(|fault| &fault.action)
    }

    /// Returns the revision to read, if a fault makes it an old one.
    pub(super) fn stale(&self) -> Option<u64> {
        let fault = self.fault.as_ref()?;
        let is_stale = matches!(fault.action, Action::StaleRead | Action::Freeze);
        is_stale.then_some(fault.added_at)
    }

    /// Returns the revision behind which nothing is shown on purpose.
    pub(super) fn frozen(&self) -> Option<u64> {
        self.stale()
            .filter(|_| self.fault() == Some(&Action::Freeze))
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        self.target.namespace.as_deref()
    }

    /// Returns the name in the path, which verbs about one object have.
    pub(crate) fn name(&self) -> &str {
        self.target.name.as_deref().unwrap_or_default()
    }

    /// Refuses a path without a name; handlers of custom resources check it late.
    pub(super) fn check_named(&self) -> Result<(), ApiError> {
        if self.name().is_empty() {
            return Err(ApiError::bad_request("name must be provided"));
        }
        Ok(())
    }

    /// Refuses an object of another namespace than that of the path.
    pub(super) fn check_same_namespace(&self, object: &Object) -> Result<(), ApiError> {
        let given = metadata_text(object, "namespace");
        match self.namespace() {
            Some(wanted) if !given.is_empty() && given != wanted => {
                Err(ApiError::namespace_mismatch())
            }
            _ => Ok(()),
        }
    }

    /// Refuses an object of another name than that of the path.
    pub(super) fn check_same_name(&self, object: &Object) -> Result<(), ApiError> {
        let (given, wanted) = (metadata_text(object, "name"), self.name());
        if given == wanted {
            return Ok(());
        }
        Err(ApiError::bad_request(if given.is_empty() {
            format!(
                "the name of the object ({wanted} based on URL) was undeterminable: name must be provided"
            )
        } else {
            format!(
                "the name of the object ({given}) does not match the name on the URL ({wanted})"
            )
        }))
    }

    /// Returns a state in the version of the request, with its type.
    pub(super) async fn present(&self, stored: &Stored) -> Result<Object, ApiError> {
        conversion::present(&self.server, &self.resource, stored).await
    }

    pub(crate) fn not_found(&self) -> ApiError {
        match misnamed(self.name()) {
            Some(reason) => ApiError::bad_request(reason),
            None => ApiError::not_found(&self.resource, self.name()),
        }
    }

    /// Returns the part of the object that the path names.
    pub(super) fn part(&self) -> Part {
        match self.target.subresource.as_deref() {
            Some("status") => Part::Status,
            Some("finalize") => Part::Finalize,
            Some("ephemeralcontainers") => Part::Ephemeral,
            Some("resize") => Part::Resize,
            Some("approval") => Part::Approval,
            // A scale, for example, writes into the main part.
            _ => Part::Main,
        }
    }
}

/// Returns the error of a name that can be in no path.
///
/// Source: `IsValidPathSegmentName` in `k8s.io/apimachinery/pkg/api/validation/path`.
fn misnamed(name: &str) -> Option<String> {
    let what = match name {
        "." | ".." => format!("may not be '{name}'"),
        _ if name.contains('%') => "may not contain '%'".to_owned(),
        _ => return None,
    };
    Some(format!("Name parameter invalid: {}: {what}", quoted(name)))
}
