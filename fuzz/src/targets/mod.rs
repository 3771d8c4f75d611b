//! The targets.

mod apply;
mod continue_tokens;
mod field_selectors;
mod json_path;
mod kubeconfig;
mod label_selectors;
mod list_pages;
mod metadata;
mod patches;
mod protobuf;
mod rules;
mod watch_lines;
mod yaml;

pub use protobuf::seeds;

/// One fuzz target.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// The name, which is that of its folders in `corpus` and `findings`, too.
    pub name: &'static str,
    /// Panics if something does not hold for an input.
    pub run: fn(&[u8]),
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target {
        name: "apply",
        run: apply::run,
    },
    Target {
        name: "continue_tokens",
        run: continue_tokens::run,
    },
    Target {
        name: "field_selectors",
        run: field_selectors::run,
    },
    Target {
        name: "json_patch",
        run: patches::json,
    },
    Target {
        name: "json_path",
        run: json_path::run,
    },
    Target {
        name: "kubeconfig",
        run: kubeconfig::run,
    },
    Target {
        name: "label_selectors",
        run: label_selectors::run,
    },
    Target {
        name: "list_pages",
        run: list_pages::run,
    },
    Target {
        name: "merge_patch",
        run: patches::merge,
    },
    Target {
        name: "metadata",
        run: metadata::run,
    },
    Target {
        name: "protobuf",
        run: protobuf::run,
    },
    Target {
        name: "rules",
        run: rules::run,
    },
    Target {
        name: "strategic_patch",
        run: patches::strategic,
    },
    Target {
        name: "watch_lines",
        run: watch_lines::run,
    },
    Target {
        name: "yaml",
        run: yaml::run,
    },
];

/// Returns the target of a name.
#[must_use]
pub fn target(name: &str) -> Option<Target> {
    TARGETS.iter().find(|each| each.name == name).copied()
}
