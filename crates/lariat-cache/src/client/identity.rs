//! Who a client says it is.

use http::header::{HeaderName, HeaderValue, USER_AGENT};
use http::{HeaderMap, Method, Request, Uri};

/// What a client adds to its requests: who sends them, for whom, and under which name it owns fields.
///
/// Reads of the cache are the same for everybody: identities cause no second watch.
///
/// ```
/// use lariat_cache::ClientIdentity;
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

/// An identity that cannot be sent.
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

    /// Sets the field manager of writes that name none themselves.
    pub fn field_manager(self, field_manager: impl Into<String>) -> Self {
        let field_manager = Some(field_manager.into());
        Self {
            field_manager,
            ..self
        }
    }

    /// Acts for another user, which the client's own user must be allowed to.
    pub fn impersonate(self, user: impl Into<String>) -> Self {
        let user = Some(user.into());
        Self { user, ..self }
    }

    /// Acts for the user as a member of a group; can be said several times.
    pub fn impersonate_group(mut self, group: impl Into<String>) -> Self {
        self.groups.push(group.into());
        self
    }

    /// Returns the user it acts for, if it is another one.
    #[must_use]
    pub fn impersonated_user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Returns the groups it acts as a member of.
    #[must_use]
    pub fn impersonated_groups(&self) -> &[String] {
        &self.groups
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Makes the headers that every request gets.
    pub(super) fn headers(&self) -> Result<HeaderMap, IdentityError> {
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

    /// Names the field manager in a write that does not.
    pub(super) fn sign<B>(&self, request: &mut Request<B>) {
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
    fn the_field_manager_is_named_where_nobody_else_is() {
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
    fn what_cannot_be_a_header_is_named() {
        let error = ClientIdentity::default()
            .user_agent("a\nb")
            .headers()
            .unwrap_err();
        assert!(error.to_string().contains("user agent"), "{error}");
    }
}
