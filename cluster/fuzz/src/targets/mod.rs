//! The targets.

mod apply;
mod continue_tokens;
mod json_path;
mod patches;
mod protobuf;
mod rules;
mod yaml;

pub use protobuf::write_seeds;

use crate::Target;

/// All targets of the API server.
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
        name: "json_patch",
        run: patches::json,
    },
    Target {
        name: "json_path",
        run: json_path::run,
    },
    Target {
        name: "merge_patch",
        run: patches::merge,
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
        name: "yaml",
        run: yaml::run,
    },
];
