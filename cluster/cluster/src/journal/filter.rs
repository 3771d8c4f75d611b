//! Filters of requests, for selections and fault rules.

use super::entries::RecordedRequest;

/// A filter of requests, which matches all requests until it is narrowed.
///
/// A [`Selection`](super::Selection) reads matching requests from the journal; a [rule](crate::faults::Rule) applies a
/// fault to them. Every method narrows the filter; of two values for the same property the later one counts.
///
/// ```
/// use lariat::cluster::faults::{Action, Rule};
///
/// // Both are for the same requests.
/// let rule = Rule::new(Action::Disconnect).verb("patch").resource("pods").client("my-controller/");
/// # let journal = |cluster: &lariat::cluster::Cluster| {
/// let patches = cluster.journal().select().verb("patch").resource("pods").client("my-controller/");
/// # patches };
/// ```
#[derive(Debug, Clone)]
#[must_use = "it does nothing until it is used"]
pub struct Filtered<T> {
    pub(crate) filter: RequestFilter,
    pub(crate) inner: T,
}

/// The properties a request has to have; `None` admits every value.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestFilter {
    pub(crate) verb: Option<String>,
    pub(crate) resource: Option<String>,
    pub(crate) subresource: Option<String>,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    /// The beginning of the `User-Agent`.
    pub(crate) client: Option<String>,
}

impl<T> Filtered<T> {
    pub(crate) fn all(inner: T) -> Self {
        Self {
            filter: RequestFilter::default(),
            inner,
        }
    }

    /// Narrows it to a verb, as the journal [has it](RecordedRequest::verb).
    pub fn verb(mut self, verb: impl Into<String>) -> Self {
        self.filter.verb = Some(verb.into());
        self
    }

    /// Narrows it to a resource by its plural name.
    pub fn resource(mut self, plural: impl Into<String>) -> Self {
        self.filter.resource = Some(plural.into());
        self
    }

    /// Narrows it to a subresource; an empty text means the resource itself.
    pub fn subresource(mut self, subresource: impl Into<String>) -> Self {
        self.filter.subresource = Some(subresource.into());
        self
    }

    /// Narrows it to a namespace in the path.
    ///
    /// An empty text means requests without one.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.filter.namespace = Some(namespace.into());
        self
    }

    /// Narrows it to a name in the path, which creations do not have.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.filter.name = Some(name.into());
        self
    }

    /// Narrows it to clients whose `User-Agent` begins with a text.
    pub fn client(mut self, user_agent: impl Into<String>) -> Self {
        self.filter.client = Some(user_agent.into());
        self
    }
}

impl RequestFilter {
    /// Returns whether a request has all the properties.
    pub(crate) fn matches(&self, request: &RecordedRequest) -> bool {
        let is = |wanted: &Option<String>, value: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == value)
        };
        // An empty text in a filter asks for requests without this part.
        let is_optional = |wanted: &Option<String>, value: &Option<String>| {
            is(wanted, value.as_deref().unwrap_or_default())
        };
        let client = self.client.as_deref().unwrap_or_default();
        is(&self.verb, &request.verb)
            && is(&self.resource, &request.resource)
            && is_optional(&self.subresource, &request.subresource)
            && is_optional(&self.namespace, &request.namespace)
            && is_optional(&self.name, &request.name)
            && request.user_agent.starts_with(client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(filtered: &Filtered<()>, request: &RecordedRequest, expected: bool) {
        assert_eq!(filtered.filter.matches(request), expected, "{filtered:?}");
    }

    #[test]
    fn a_request_has_to_have_every_property() {
        let status = RecordedRequest {
            verb: "patch".into(),
            resource: "pods".into(),
            subresource: Some("status".into()),
            namespace: Some("default".into()),
            name: Some("a".into()),
            user_agent: "controller/1.0".into(),
            ..RecordedRequest::default()
        };
        let list = RecordedRequest {
            verb: "list".into(),
            resource: "pods".into(),
            ..RecordedRequest::default()
        };
        let all = || Filtered::all(());
        for (filtered, of_status, of_list) in [
            (all(), true, true),
            (all().resource("pods"), true, true),
            (all().resource("pods").verb("list"), false, true),
            (all().subresource("status"), true, false),
            (all().subresource(""), false, true),
            (all().namespace("default").name("a"), true, false),
            (all().namespace(""), false, true),
            (all().client("controller/"), true, false),
            (all().client("other").client(""), true, true),
        ] {
            check(&filtered, &status, of_status);
            check(&filtered, &list, of_list);
        }
    }
}
