//! The names of a new operator: what they may be, and what follows from them.

/// Makes a type of a checked text.
macro_rules! text {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub(crate) struct $name(String);

        impl $name {
            pub(crate) fn as_str(&self) -> &str {
                &self.0
            }
        }
    };
}

text! {
    /// The operator's name: of the package, of the program, and of what it runs as.
    Name
}
text! {
    /// The kind it looks after.
    Kind
}
text! {
    /// The API group of the kind.
    Group
}

/// A label of DNS is no longer, which names of objects and images have to be.
const LONGEST_NAME: usize = 52;
const LONGEST_KIND: usize = 63;
const LONGEST_GROUP: usize = 253;

/// Packages the project itself uses, and words that Rust or YAML takes for something else.
const TAKEN_NAMES: &[&str] = &[
    "anyhow",
    "async",
    "await",
    "as",
    "break",
    "const",
    "continue",
    "core",
    "crate",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "k8s-openapi",
    "kube",
    "lariat",
    "let",
    "loop",
    "match",
    "mod",
    "move",
    "mut",
    "n",
    "no",
    "null",
    "off",
    "on",
    "operator",
    "proc-macro",
    "pub",
    "ref",
    "return",
    "schemars",
    "self",
    "serde",
    "serde-json",
    "static",
    "std",
    "struct",
    "super",
    "test",
    "tokio",
    "tracing",
    "tracing-subscriber",
    "trait",
    "true",
    "try",
    "type",
    "unsafe",
    "use",
    "where",
    "while",
    "y",
    "yes",
    "yield",
    "abstract",
    "become",
    "box",
    "do",
    "final",
    "macro",
    "override",
    "priv",
    "typeof",
    "unsized",
    "virtual",
];

/// Types the project itself uses, and words that YAML takes for something else.
const TAKEN_KINDS: &[&str] = &[
    "Api",
    "Arc",
    "AsyncBufReadExt",
    "AsyncReadExt",
    "AsyncWriteExt",
    "Box",
    "BufReader",
    "Cache",
    "CachedApi",
    "Cause",
    "Client",
    "Cluster",
    "Condition",
    "Context",
    "ControllerOptions",
    "CustomResource",
    "CustomResourceExt",
    "Deployment",
    "Deserialize",
    "Desired",
    "Duration",
    "DynamicObject",
    "Enqueue",
    "Err",
    "Error",
    "Event",
    "False",
    "Gvk",
    "Handler",
    "HandlerError",
    "HandlerOptions",
    "HandlerResult",
    "Infallible",
    "IpAddr",
    "Ipv4Addr",
    "Ipv6Addr",
    "IsTerminal",
    "JoinSet",
    "JsonSchema",
    "KindStatus",
    "Metadata",
    "N",
    "No",
    "None",
    "Null",
    "ObjectKey",
    "Off",
    "Ok",
    "On",
    "Operator",
    "Option",
    "Outcome",
    "Patch",
    "PatchParams",
    "Phase",
    "PostParams",
    "Predicate",
    "Priority",
    "Reconcile",
    "Registration",
    "Relation",
    "Result",
    "Rule",
    "Self",
    "Serialize",
    "SharedController",
    "SharedControllerFactory",
    "SocketAddr",
    "Some",
    "String",
    "TcpListener",
    "TcpStream",
    "True",
    "Vec",
    "Workloads",
    "Y",
    "Yes",
];

impl Name {
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        let is_word = text.split('-').all(|part| {
            !part.is_empty()
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        });
        let begins = text
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_lowercase());
        if !is_word || !begins || text.len() > LONGEST_NAME {
            return Err(format!(
                "{text:?} cannot be the name of an operator: small letters, digits and single dashes, a letter first, \
                 at most {LONGEST_NAME}, such as shop-operator"
            ));
        }
        if TAKEN_NAMES.contains(&text) {
            return Err(format!(
                "{text:?} is the name of a package the operator uses; choose another"
            ));
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the name as Rust writes it.
    pub(crate) fn snake(&self) -> String {
        self.0.replace('-', "_")
    }

    /// Returns the kind an operator of this name looks after: `Shop` for `shop-operator`.
    pub(crate) fn kind(&self) -> Kind {
        let stem = ["-operator", "-controller"]
            .iter()
            .find_map(|suffix| self.0.strip_suffix(suffix));
        let words = stem.unwrap_or(&self.0).split('-');
        let kind: String = words.map(capitalised).collect();
        match TAKEN_KINDS.contains(&kind.as_str()) {
            true => Kind(format!("My{kind}")),
            false => Kind(kind),
        }
    }
}

impl Kind {
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        let begins = text
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_uppercase());
        let is_word = text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !begins || !is_word || text.len() > LONGEST_KIND {
            return Err(format!(
                "--kind {text:?} is no kind: letters and digits, a capital first, such as Shop"
            ));
        }
        if TAKEN_KINDS.contains(&text) {
            return Err(format!(
                "--kind {text:?} is taken by something the operator uses; choose another"
            ));
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the kind in small letters.
    pub(crate) fn singular(&self) -> String {
        self.0.to_ascii_lowercase()
    }

    /// Returns the resource's name in URLs, as English makes plurals, more or less.
    pub(crate) fn plural(&self) -> String {
        let word = self.singular();
        let is_vowel = |letter: char| "aeiou".contains(letter);
        let before_last = word.chars().rev().nth(1);
        if let Some(stem) = word
            .strip_suffix('y')
            .filter(|_| !before_last.is_some_and(is_vowel))
        {
            return format!("{stem}ies");
        }
        let hisses = ["s", "x", "z", "ch", "sh"]
            .iter()
            .any(|end| word.ends_with(end));
        format!("{word}{}", if hisses { "es" } else { "s" })
    }
}

impl Group {
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        let is_label = |label: &str| {
            let ends = |byte: Option<u8>| {
                byte.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
            };
            let inside =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            ends(label.bytes().next())
                && ends(label.bytes().last())
                && label.bytes().all(inside)
                && label.len() <= 63
        };
        let is_domain = text.contains('.') && text.split('.').all(is_label);
        if !is_domain || text.len() > LONGEST_GROUP {
            return Err(format!(
                "--group {text:?} is no API group: a domain of yours in small letters, such as demo.dev"
            ));
        }
        let is_below = |domain: &str| {
            let rest = text.strip_suffix(domain);
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        if is_below("k8s.io") || is_below("kubernetes.io") {
            return Err(format!(
                "--group {text:?} is protected: groups of k8s.io and kubernetes.io need an approval; use a domain of yours"
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

fn capitalised(word: &str) -> String {
    let (first, rest) = word.split_at(word.len().min(1));
    first.to_ascii_uppercase() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_kind() {
        for (name, kind, plural) in [
            ("shop-operator", "Shop", "shops"),
            ("big-fox-controller", "BigFox", "bigfoxes"),
            ("policy", "Policy", "policies"),
            ("gateway", "Gateway", "gateways"),
            ("batch", "Batch", "batches"),
            ("event-operator", "MyEvent", "myevents"),
        ] {
            let of = Name::new(name).unwrap().kind();
            assert_eq!((of.as_str(), &*of.plural()), (kind, plural), "{name}");
            assert_eq!(Kind::new(kind), Ok(of), "{kind}");
        }
    }

    #[test]
    fn what_cannot_be_a_name_is_refused_with_a_reason() {
        for name in [
            "",
            "Shop",
            "1shop",
            "shop_operator",
            "-shop",
            "shop-",
            "a--b",
            "ü",
            "tokio",
        ] {
            let error = Name::new(name).unwrap_err();
            assert!(error.contains(&format!("{name:?}")), "{error}");
        }
        assert!(Name::new(&"a".repeat(LONGEST_NAME + 1)).is_err());
        for kind in ["", "shop", "Big-Shop", "Größe", "Deployment"] {
            assert!(Kind::new(kind).unwrap_err().contains("--kind"), "{kind}");
        }
        for group in [
            "",
            "demo",
            "Demo.dev",
            "-a.b",
            "a..b",
            "apps.k8s.io",
            "x.kubernetes.io",
        ] {
            assert!(
                Group::new(group).unwrap_err().contains("--group"),
                "{group}"
            );
        }
        for group in ["demo.dev", "mykubernetes.io"] {
            assert!(Group::new(group).is_ok(), "{group}");
        }
        assert_eq!(
            Name::new("cluster-operator").unwrap().kind().as_str(),
            "MyCluster"
        );
    }
}
