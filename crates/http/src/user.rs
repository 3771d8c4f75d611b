//! The user on whose behalf a request is answered.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::authentication::v1::UserInfo;
use k8s_openapi::api::authorization::v1::SubjectAccessReviewSpec;

/// The extra value of a ServiceAccount token that is unique to the token.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// A user as the API server knows it: name, uid, groups and extra values.
///
/// The `UserInfo` of a `TokenReview` converts into a complete user. A user that is created by hand also needs the group
/// `system:authenticated`, to which role bindings may refer; it is not added automatically. Order and repetition of
/// groups do not matter. Clones share the texts.
///
/// ```
/// use lariat_http::User;
///
/// let jane = User::new("jane").group("developers").group("system:authenticated");
/// assert_eq!(jane.name(), "jane");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct User(Arc<Info>);

/// The attributes of a user.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
struct Info {
    /// The name.
    name: String,
    /// The uid; empty if unknown.
    uid: String,
    /// The groups.
    groups: BTreeSet<String>,
    /// The extra values, by key.
    extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Creates a user without groups.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self(Arc::new(Info {
            name: name.into(),
            ..Info::default()
        }))
    }

    /// Adds a group.
    #[must_use]
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.info().groups.insert(group.into());
        self
    }

    /// Sets the uid, which tells apart users that had the same name at different times.
    #[must_use]
    pub fn uid(mut self, uid: impl Into<String>) -> Self {
        self.info().uid = uid.into();
        self
    }

    /// Sets the values of an extra attribute.
    #[must_use]
    pub fn extra(
        mut self,
        key: impl Into<String>,
        values: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let values = values.into_iter().map(Into::into).collect();
        self.info().extra.insert(key.into(), values);
        self
    }

    /// Returns the user without the id of its credential.
    ///
    /// It is `authentication.kubernetes.io/credential-id` among the extra values, and differs from token to token.
    #[must_use]
    pub fn without_credential(mut self) -> Self {
        if self.0.extra.contains_key(CREDENTIAL_ID) {
            self.info().extra.remove(CREDENTIAL_ID);
        }
        self
    }

    /// Returns the attributes, copied if they are shared.
    fn info(&mut self) -> &mut Info {
        Arc::make_mut(&mut self.0)
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns whether the user has neither a name nor a group.
    ///
    /// A `SubjectAccessReview` needs at least one of them.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.0.name.is_empty() && self.0.groups.is_empty()
    }

    /// Returns the user's part of a `SubjectAccessReview`.
    #[must_use]
    pub fn review_spec(&self) -> SubjectAccessReviewSpec {
        let text = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        SubjectAccessReviewSpec {
            user: text(&self.0.name),
            uid: text(&self.0.uid),
            groups: Some(self.0.groups.iter().cloned().collect()),
            extra: Some(self.0.extra.clone()).filter(|extra| !extra.is_empty()),
            ..SubjectAccessReviewSpec::default()
        }
    }
}

impl From<UserInfo> for User {
    fn from(info: UserInfo) -> Self {
        Self(Arc::new(Info {
            name: info.username.unwrap_or_default(),
            uid: info.uid.unwrap_or_default(),
            groups: info.groups.unwrap_or_default().into_iter().collect(),
            extra: info.extra.unwrap_or_default(),
        }))
    }
}

/// Shows counts only: extra values may be confidential.
impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("User")
            .field("name", &self.0.name)
            .field("groups", &self.0.groups.len())
            .field("extra", &self.0.extra.len())
            .finish_non_exhaustive()
    }
}
