//! The identity of a client: user agent, impersonated user and field manager.

use http::header::{HeaderName, HeaderValue, USER_AGENT};
use http::{HeaderMap, Method, Request, Uri};

/// The identity that a client adds to its requests.
///
/// An identity consists of the user agent, an impersonated user, and the field manager of writes. Caches do not depend
/// on it: another identity causes no second watch.
///
/// ```
/// use lariat::cache::ClientIdentity;
///
/// let identity = ClientIdentity::default()
///     .user_agent("scaler/1.2")
///     .field_manager("scaler")
///     .impersonate("system:serviceaccount:shop:scaler");
/// # let _ = identity;
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
#[must_use = "an identity does nothing until a client has it"]
pub struct ClientIdentity {
    user_agent: Option<String>,
    field_manager: Option<String>,
    user: Option<String>,
    groups: Vec<String>,
}

/// The error of an identity that cannot be sent as headers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {part} of a client's identity cannot be sent as a header: {text:?}")]
pub struct IdentityError {
    part: &'static str,
    text: String,
}

const IMPERSONATE_USER: HeaderName = HeaderName::from_static("impersonate-user");
const IMPERSONATE_GROUP: HeaderName = HeaderName::from_static("impersonate-group");

impl ClientIdentity {
    /// Sets the `User-Agent`, under which the API server logs requests.
    pub fn user_agent(self, user_agent: impl Into<String>) -> Self {
        let user_agent = Some(user_agent.into());
        Self { user_agent, ..self }
    }

    /// Sets the field manager of writes that have none.
    pub fn field_manager(self, field_manager: impl Into<String>) -> Self {
        let field_manager = Some(field_manager.into());
        Self {
            field_manager,
            ..self
        }
    }

    /// Impersonates another user, for which the program needs the permission.
    pub fn impersonate(self, user: impl Into<String>) -> Self {
        let user = Some(user.into());
        Self { user, ..self }
    }

    /// Impersonates a group; can be called repeatedly.
    ///
    /// ```
    /// use lariat::cache::ClientIdentity;
    ///
    /// let identity = ClientIdentity::default()
    ///     .impersonate("ann")
    ///     .impersonate_group("developers")
    ///     .impersonate_group("testers");
    /// assert_eq!(identity.impersonated_groups(), ["developers", "testers"]);
    /// ```
    pub fn impersonate_group(mut self, group: impl Into<String>) -> Self {
        self.groups.push(group.into());
        self
    }

    /// Returns the impersonated user, if there is one.
    ///
    /// ```
    /// use lariat::cache::ClientIdentity;
    ///
    /// let identity = ClientIdentity::default();
    /// assert_eq!(identity.impersonated_user(), None);
    /// assert_eq!(identity.impersonate("ann").impersonated_user(), Some("ann"));
    /// ```
    #[must_use]
    pub fn impersonated_user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Returns the impersonated groups.
    #[must_use]
    pub fn impersonated_groups(&self) -> &[String] {
        &self.groups
    }

    /// Returns whether it adds nothing to requests.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Creates the headers of every request: user agent and impersonation.
    ///
    /// Each impersonated group is a header of the same name.
    ///
    /// # Errors
    ///
    /// Fails if a text cannot be sent as a header.
    pub fn headers(&self) -> Result<HeaderMap, IdentityError> {
        let mut headers = HeaderMap::new();
        let mut add = |name: HeaderName, part: &'static str, text: &String| {
            let value = HeaderValue::from_str(text).map_err(|_| IdentityError {
                part,
                text: text.clone(),
            })?;
            headers.append(name, value);
            Ok(())
        };
        if let Some(text) = &self.user_agent {
            add(USER_AGENT, "user agent", text)?;
        }
        if let Some(text) = &self.user {
            add(IMPERSONATE_USER, "impersonated user", text)?;
        }
        for text in &self.groups {
            add(IMPERSONATE_GROUP, "impersonated group", text)?;
        }
        Ok(headers)
    }

    /// Adds the field manager to a write that has none.
    pub fn sign<B>(&self, request: &mut Request<B>) {
        let is_write = [Method::POST, Method::PUT, Method::PATCH].contains(request.method());
        let query = request.uri().query().unwrap_or_default();
        let Some(manager) = self.field_manager.as_deref().filter(|_| is_write) else {
            return;
        };
        if query
            .split('&')
            .any(|pair| pair.starts_with("fieldManager="))
        {
            return;
        }
        let mut signed = form_urlencoded::Serializer::new(query.to_owned());
        signed.append_pair("fieldManager", manager);
        let path = request.uri().path();
        let mut parts = request.uri().clone().into_parts();
        parts.path_and_query = format!("{path}?{}", signed.finish()).parse().ok();
        if let Ok(uri) = Uri::from_parts(parts) {
            *request.uri_mut() = uri;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_manager_is_added_where_there_is_none() {
        let identity = ClientIdentity::default().field_manager("a b");
        let signed = |method: Method, uri: &str| {
            let request = Request::builder().method(method).uri(uri).body(());
            let mut request = request.unwrap();
            identity.sign(&mut request);
            request.uri().to_string()
        };
        assert_eq!(
            signed(Method::POST, "/api/v1/pods"),
            "/api/v1/pods?fieldManager=a+b"
        );
        assert_eq!(
            signed(Method::PATCH, "/x?force=true"),
            "/x?force=true&fieldManager=a+b"
        );
        assert_eq!(
            signed(Method::PUT, "/x?fieldManager=me"),
            "/x?fieldManager=me"
        );
        assert_eq!(signed(Method::GET, "/x"), "/x");
    }

    #[test]
    fn an_invalid_header_is_named_in_the_error() {
        let error = ClientIdentity::default()
            .user_agent("a\nb")
            .headers()
            .unwrap_err();
        assert!(error.to_string().contains("user agent"), "{error}");
    }
}
