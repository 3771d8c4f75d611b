//! The grammar of the API's paths.

use percent_encoding::percent_decode_str;

/// The endpoint or object that a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/`
    Root,
    Version,
    /// `/readyz`, or one check below it
    Health {
        endpoint: String,
        check: String,
    },
    Metrics,
    /// `/.well-known/openid-configuration`: who issues tokens.
    Issuer,
    /// `/openid/v1/jwks`: the keys of tokens.
    KeySet,
    /// `/openapi/v3`
    OpenApiIndex,
    /// `/openapi/v3/…`: `api/v1`, `apis/{group}/{version}`, and others
    OpenApi(String),
    /// `/openapi/v2`
    OpenApiV2,
    /// `/api`
    CoreVersions,
    /// `/apis`
    Groups,
    /// `/apis/{group}`
    Group(String),
    /// `/api/v1`, `/apis/{group}/{version}`
    Resources {
        group: String,
        version: String,
    },
    Objects(Target),
    /// `/lariat/…`: paths of Lariat, which Kubernetes does not have.
    Admin(Vec<String>),
    /// `/api/v1/watch`, which does not say what is watched.
    Incomplete,
    Unknown,
}

/// Objects, an object, or a subresource of one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) namespace: Option<String>,
    pub(crate) plural: String,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
    /// The path itself says that this is a watch, of one object if it names one.
    pub(crate) watches: bool,
}

impl Route {
    pub(crate) fn parse(path: &str) -> Self {
        let segments: Option<Vec<String>> = path
            .trim_matches('/')
            .split('/')
            .map(|segment| Some(percent_decode_str(segment).decode_utf8().ok()?.into_owned()))
            .collect();
        let Some(segments) = segments else {
            return Self::Unknown;
        };
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        match segments[..] {
            ["version"] => Self::Version,
            [endpoint @ ("healthz" | "livez" | "readyz"), ref rest @ ..] => Self::Health {
                endpoint: endpoint.to_owned(),
                check: rest.join("/"),
            },
            ["metrics"] => Self::Metrics,
            [".well-known", "openid-configuration"] => Self::Issuer,
            ["openid", "v1", "jwks"] => Self::KeySet,
            // The index has no slash at its end.
            ["openapi", "v3"] if !path.ends_with('/') => Self::OpenApiIndex,
            ["openapi", "v3", ref rest @ ..] => Self::OpenApi(rest.join("/")),
            ["openapi", "v2"] => Self::OpenApiV2,
            [""] => Self::Root,
            ["api"] => Self::CoreVersions,
            ["apis"] => Self::Groups,
            ["apis", group] => Self::Group(group.to_owned()),
            ["api", version, ref rest @ ..] => Self::versioned("", version, rest),
            ["apis", group, version, ref rest @ ..] => Self::versioned(group, version, rest),
            ["lariat", ref rest @ ..] => {
                Self::Admin(rest.iter().map(|&segment| segment.to_owned()).collect())
            }
            _ => Self::Unknown,
        }
    }

    fn versioned(group: &str, version: &str, rest: &[&str]) -> Self {
        if rest.is_empty() {
            return Self::Resources {
                group: group.to_owned(),
                version: version.to_owned(),
            };
        }
        let mut target = Target {
            group: group.to_owned(),
            version: version.to_owned(),
            ..Target::default()
        };
        if rest == ["watch"] {
            return Self::Incomplete;
        }
        // The way watches were asked for before there was a parameter for them.
        let rest = match rest {
            ["watch", rest @ ..] if !rest.is_empty() => {
                target.watches = true;
                rest
            }
            rest => rest,
        };
        // A namespace is itself an object: `namespaces/x` and `namespaces/x/status` name it, anything
        // longer names something inside it.
        let rest = match rest {
            ["namespaces", namespace, plural, rest @ ..]
                if !(rest.is_empty() && matches!(*plural, "status" | "finalize")) =>
            {
                target.namespace = Some((*namespace).to_owned());
                [&[*plural], rest].concat()
            }
            rest => rest.to_vec(),
        };
        let mut parts = rest.into_iter().map(str::to_owned);
        target.plural = parts.next().unwrap_or_default();
        target.name = parts.next();
        let subresource: Vec<String> = parts.collect();
        target.subresource = (!subresource.is_empty()).then(|| subresource.join("/"));
        Self::Objects(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: &str) {
        let text = match Route::parse(path) {
            Route::Objects(target) => {
                let optional = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
                format!(
                    "{}/{} ns={} {} name={} sub={}",
                    target.group,
                    target.version,
                    optional(target.namespace),
                    target.plural,
                    optional(target.name),
                    optional(target.subresource),
                )
            }
            route => format!("{route:?}"),
        };
        assert_eq!(text, expected, "{path}");
    }

    #[test]
    fn paths_name_what_kubernetes_says_they_name() {
        check("/version", "Version");
        check(
            "/readyz/ping",
            r#"Health { endpoint: "readyz", check: "ping" }"#,
        );
        check("/openid/v1/jwks", "KeySet");
        check("/openid/v1", "Unknown");
        check("/openapi/v3", "OpenApiIndex");
        check("/openapi/v3/", r#"OpenApi("")"#);
        check("/openapi/v3/apis/apps/v1", r#"OpenApi("apis/apps/v1")"#);
        check(
            "/api/v1/watch/namespaces/a/pods/b",
            "/v1 ns=a pods name=b sub=-",
        );
        check("/api/v1/watch", "Incomplete");
        check("/apis/apps", r#"Group("apps")"#);
        check("/api/v1", r#"Resources { group: "", version: "v1" }"#);
        check("/api/v1/pods", "/v1 ns=- pods name=- sub=-");
        check("/api/v1/namespaces", "/v1 ns=- namespaces name=- sub=-");
        check("/api/v1/namespaces/a", "/v1 ns=- namespaces name=a sub=-");
        check(
            "/api/v1/namespaces/a/status",
            "/v1 ns=- namespaces name=a sub=status",
        );
        check("/api/v1/namespaces/a/pods", "/v1 ns=a pods name=- sub=-");
        check(
            "/apis/apps/v1/namespaces/a/deployments/b/scale",
            "apps/v1 ns=a deployments name=b sub=scale",
        );
        check(
            "/apis/apps/v1/namespaces/a/deployments/b/x/y",
            "apps/v1 ns=a deployments name=b sub=x/y",
        );
        check("/api/v1/nodes/a%2Fb", "/v1 ns=- nodes name=a/b sub=-");
        check("/", "Root");
        check("/lariat/faults/1", r#"Admin(["faults", "1"])"#);
        check("/nosuch", "Unknown");
        check("/api/v1/pods/%ff", "Unknown");
    }
}
