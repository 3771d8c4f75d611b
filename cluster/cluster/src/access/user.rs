//! Users and their groups.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Whose members may do everything.
pub(crate) const MASTERS: &str = "system:masters";
/// The group of all authenticated users.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";

/// The sender of a request: a name and the groups it belongs to.
///
/// ```
/// use lariat::cluster::User;
///
/// let user = User::new("jane").group("developers");
/// assert_eq!(user.name(), "jane");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    name: String,
    uid: String,
    groups: Vec<String>,
    /// Extra values, such as the id of the token; a name may have several.
    extra: Vec<(String, String)>,
}

impl User {
    /// Makes a user without groups.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// Makes the user who may do everything.
    #[must_use]
    pub fn admin() -> Self {
        Self::new("kubernetes-admin").group(MASTERS)
    }

    /// Adds a group; members of `system:masters` may do everything.
    ///
    /// ```
    /// use lariat::cluster::User;
    ///
    /// let admin = User::new("root").group("system:masters");
    /// assert_eq!(admin.groups(), ["system:masters"]);
    /// ```
    #[must_use]
    pub fn group(mut self, group: impl Into<String>) -> Self {
        let group = group.into();
        if !self.groups.contains(&group) {
            self.groups.push(group);
        }
        self
    }

    /// Sets the uid, which distinguishes users that had one name at different times.
    #[must_use]
    pub fn uid(self, uid: impl Into<String>) -> Self {
        Self {
            uid: uid.into(),
            ..self
        }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the groups.
    #[must_use]
    pub fn groups(&self) -> &[String] {
        &self.groups
    }

    pub(crate) fn anonymous() -> Self {
        Self::new("system:anonymous").group(UNAUTHENTICATED)
    }

    /// Makes the user a service account is.
    pub(crate) fn service_account(namespace: &str, name: &str) -> Self {
        Self::new(format!("system:serviceaccount:{namespace}:{name}"))
            .group("system:serviceaccounts")
            .group(format!("system:serviceaccounts:{namespace}"))
    }

    /// Returns the user as one who said who they are.
    pub(crate) fn authenticated(self) -> Self {
        self.group(AUTHENTICATED)
    }

    pub(crate) fn extra(mut self, name: &str, value: String) -> Self {
        self.extra.push((name.to_owned(), value));
        self
    }

    pub(crate) fn is_anonymous(&self) -> bool {
        self.belongs_to(UNAUTHENTICATED)
    }

    pub(crate) fn belongs_to(&self, group: &str) -> bool {
        self.groups.iter().any(|each| each == group)
    }

    /// Returns the user as reviews write it.
    pub(crate) fn info(&self) -> Value {
        let mut info = json!({"username": self.name, "groups": self.groups});
        if !self.uid.is_empty() {
            info["uid"] = self.uid.clone().into();
        }
        if !self.extra.is_empty() {
            let mut extra: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
            for (name, value) in &self.extra {
                extra.entry(name).or_default().push(value);
            }
            info["extra"] = json!(extra);
        }
        info
    }
}
