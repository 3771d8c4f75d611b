//! The names of a new operator: what they may be, and what follows from them.

use super::taken;

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
    /// The kind it manages.
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

impl Name {
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        if !Self::follows_rule(text) {
            return Err(Self::refusal(text));
        }
        if let Some(what) = Self::taken(text) {
            return Err(format!("it is {what}; choose another name"));
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns what has the name already.
    fn taken(text: &str) -> Option<&'static str> {
        let all = [
            (taken::KEYWORDS, "a word of Rust or YAML"),
            (taken::LIBRARIES, "a library that comes with Rust"),
            (taken::FOLDERS, "reserved by cargo or Windows"),
            (taken::MODULES, "a module of the project"),
            (taken::PACKAGES, "a package the operator uses"),
        ];
        let mut all = all.into_iter();
        all.find_map(|(names, what)| names.contains(&text).then_some(what))
    }

    fn follows_rule(text: &str) -> bool {
        let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let is_word = |part: &str| !part.is_empty() && part.bytes().all(is_allowed);
        text.starts_with(|first: char| first.is_ascii_lowercase())
            && text.split('-').all(is_word)
            && text.len() <= LONGEST_NAME
    }

    /// Returns the rule for names, and a name that follows it, like the given one if possible.
    fn refusal(text: &str) -> String {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let mut similar = words.join("-").to_ascii_lowercase();
        if !Self::follows_rule(&similar) || Self::taken(&similar).is_some() {
            similar = "shop-operator".to_owned();
        }
        format!(
            "a name has lowercase letters, digits and single dashes, begins with a letter, ends with a letter or a \
             digit, and has at most {LONGEST_NAME} characters, such as {similar}"
        )
    }

    /// Returns the name as Rust writes it.
    pub(crate) fn snake(&self) -> String {
        self.0.replace('-', "_")
    }

    /// Returns the condition in which a reconciler of this name reports: `FoxRunnerSynced` for `fox-runner`.
    pub(crate) fn condition(&self) -> String {
        let words: String = self.0.split('-').map(capitalised).collect();
        words + "Synced"
    }

    /// Returns the kind an operator of this name manages: `Shop` for `shop-operator`.
    pub(crate) fn kind(&self) -> Kind {
        let stem = ["-operator", "-controller"]
            .iter()
            .find_map(|suffix| self.0.strip_suffix(suffix));
        let words = stem.unwrap_or(&self.0).split('-');
        let kind: String = words.map(capitalised).collect();
        if taken::TYPES.contains(&&*kind) || taken::BUILT_IN.contains(&&*kind) {
            Kind(format!("My{kind}"))
        } else {
            Kind(kind)
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
            return Err("letters and digits, a capital first, such as Shop".to_owned());
        }
        if taken::BUILT_IN.contains(&text) {
            return Err("it is a kind of Kubernetes itself; choose another".to_owned());
        }
        if taken::TYPES.contains(&text) {
            return Err("it is taken by something the operator uses; choose another".to_owned());
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the kind in small letters.
    pub(crate) fn singular(&self) -> String {
        self.0.to_ascii_lowercase()
    }

    /// Returns the kind as the names of modules are written: `big_fox` for `BigFox`.
    pub(crate) fn snake(&self) -> String {
        let letters: Vec<char> = self.0.chars().collect();
        let mut snake = String::new();
        for (n, letter) in letters.iter().enumerate() {
            let before = n.checked_sub(1).map(|n| letters[n]);
            let after = letters.get(n + 1);
            // A word begins after small letters, and with the last capital before small ones.
            let begins = before.is_some_and(|it| !it.is_ascii_uppercase())
                || before.is_some() && after.is_some_and(char::is_ascii_lowercase);
            if letter.is_ascii_uppercase() && begins {
                snake.push('_');
            }
            snake.push(letter.to_ascii_lowercase());
        }
        snake
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
            return Err("a domain of yours in small letters, such as example.com".to_owned());
        }
        let is_below = |domain: &str| {
            let rest = text.strip_suffix(domain);
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        if is_below("k8s.io") || is_below("kubernetes.io") {
            let error =
                "groups of k8s.io and kubernetes.io need an approval; use a domain of yours";
            return Err(error.to_owned());
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
    fn names_imply_the_kind() {
        for (name, kind, plural) in [
            ("shop-operator", "Shop", "shops"),
            ("big-fox-controller", "BigFox", "bigfoxes"),
            ("policy", "Policy", "policies"),
            ("gateway", "Gateway", "gateways"),
            ("batch", "Batch", "batches"),
            ("event-operator", "MyEvent", "myevents"),
            ("pod-operator", "MyPod", "mypods"),
        ] {
            let of = Name::new(name).unwrap().kind();
            assert_eq!((of.as_str(), &*of.plural()), (kind, plural), "{name}");
            assert_eq!(Kind::new(kind), Ok(of), "{kind}");
        }
    }

    #[test]
    fn modules_are_named_after_kinds() {
        for (kind, snake) in [
            ("Shop", "shop"),
            ("BigFox", "big_fox"),
            ("HTTPRoute", "http_route"),
            ("TheURL", "the_url"),
            ("V2Shop", "v2_shop"),
        ] {
            assert_eq!(Kind::new(kind).unwrap().snake(), snake, "{kind}");
        }
        assert_eq!(Name::new("big-fox").unwrap().condition(), "BigFoxSynced");
    }

    #[tokio::test]
    async fn no_kind_of_a_cluster_is_taken_again() {
        let cluster = lariat_cluster::Cluster::builder().start().await.unwrap();
        let client = cluster.client();
        let mut kinds = Vec::new();
        for group in client.list_api_groups().await.unwrap().groups {
            for version in group.versions {
                let served = client
                    .list_api_group_resources(&version.group_version)
                    .await;
                kinds.extend(served.unwrap().resources);
            }
        }
        for version in client.list_core_api_versions().await.unwrap().versions {
            kinds.extend(
                client
                    .list_core_api_resources(&version)
                    .await
                    .unwrap()
                    .resources,
            );
        }
        assert!(kinds.len() > 50, "{}", kinds.len());
        // Subresources have kinds of their own, which are not stored.
        for kind in kinds.iter().filter(|kind| !kind.name.contains('/')) {
            assert!(Kind::new(&kind.kind).is_err(), "{}", kind.kind);
        }
    }

    #[test]
    fn no_package_of_the_workspace_is_taken_again() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let wings = ["crates", "cluster"].map(|wing| std::fs::read_dir(format!("{root}/{wing}")));
        let folders = wings.into_iter().flat_map(Result::unwrap);
        let is_crate = |folder: &std::fs::DirEntry| folder.path().join("Cargo.toml").exists();
        for folder in folders.map(Result::unwrap).filter(is_crate) {
            let name = match folder.file_name().into_string().unwrap() {
                facade if facade == "lariat" => facade,
                name => format!("lariat-{name}"),
            };
            // A project depends on none of these.
            let free = [
                "lariat-bench",
                "lariat-cli",
                "lariat-differential",
                "lariat-fuzz",
                "lariat-sim",
                "lariat-testing",
            ];
            let is_free = free.contains(&&*name);
            assert_eq!(Name::new(&name).is_ok(), is_free, "{name}");
        }
    }

    #[test]
    fn a_name_that_would_not_build_is_refused() {
        for name in [
            "lariat-operator",
            "serve",
            "build",
            "deps",
            "examples",
            "incremental",
            "std",
            "alloc",
            "test",
            "async",
            "gen",
            "con",
            "yes",
        ] {
            let error = Name::new(name).unwrap_err();
            assert!(error.contains("choose another name"), "{error}");
        }
    }

    #[test]
    fn the_rule_for_names_is_said_with_a_name_that_follows_it() {
        for (name, similar) in [
            ("Shop_Operator", "shop-operator"),
            ("My Fox!", "my-fox"),
            ("a--b-", "a-b"),
            ("1shop", "shop-operator"),
            ("Self", "shop-operator"),
            ("", "shop-operator"),
        ] {
            let expected = format!(
                "a name has lowercase letters, digits and single dashes, begins with a letter, ends with a letter or a \
                 digit, and has at most 52 characters, such as {similar}"
            );
            assert_eq!(Name::new(name), Err(expected), "{name}");
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
            let expected = ["characters, such as ", "choose another name"];
            assert!(expected.iter().any(|it| error.contains(it)), "{error}");
        }
        assert!(Name::new(&"a".repeat(LONGEST_NAME + 1)).is_err());
        for kind in [
            "",
            "shop",
            "Big-Shop",
            "Größe",
            "Deployment",
            "Pod",
            "PodList",
            "Vec",
        ] {
            assert!(Kind::new(kind).is_err(), "{kind}");
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
                Group::new(group).unwrap_err().contains("a domain of yours"),
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
