//! Kubeconfigs, as others may write them.

use lariat_client::fuzzing::KubeconfigText;
use lariat_core::yaml;
use serde_json::Value;

/// The members of users that refer to files and commands.
const OUTSIDE: [&str; 5] = [
    "exec",
    "auth-provider",
    "tokenFile",
    "client-certificate",
    "client-key",
];

pub(crate) fn run(data: &[u8]) {
    // A kubeconfig that refers to files is read and not used: otherwise the fuzzer would open any file.
    let kubeconfig = KubeconfigText::parse(data).and_then(KubeconfigText::self_contained);
    let config = kubeconfig.and_then(|kubeconfig| kubeconfig.current());
    if let Ok(config) = &config {
        for member in OUTSIDE {
            assert!(config["user"].get(member).is_none(), "it has {member}");
        }
        assert_eq!(config["authority-file"], Value::Null);
    }
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Ok(value) = yaml::read(text.strip_prefix('\u{feff}').unwrap_or(text)) else {
        return;
    };
    for (format, text) in [("YAML", yaml::write(&value)), ("JSON", value.to_string())] {
        let again = KubeconfigText::parse(text.as_bytes()).and_then(KubeconfigText::self_contained);
        let again = again.and_then(|kubeconfig| kubeconfig.current());
        assert_eq!(again, config, "the same in {format}:\n{text}");
    }
}
