//! The options of `lariat cluster` that bound what it keeps, and for how long it waits.

use std::time::Duration;

use lariat_cluster::ClusterBuilder;

/// What bounds the memory of a cluster; what is not given is as the builder has it.
#[derive(Debug, Default, PartialEq, clap::Args)]
pub(super) struct Bounds {
    /// Keep at most this many changes of each resource for watches [default: 100000].
    #[arg(long, value_name = "CHANGES", help_heading = "Bounds")]
    history: Option<usize>,
    /// Keep at most this many MiB of changes, of all resources [default: 256].
    ///
    /// Current objects do not count. The last change of each resource is always kept; with 0, only that.
    #[arg(long, value_name = "MIB", help_heading = "Bounds")]
    history_size: Option<usize>,
    /// Keep changes for this many seconds, 0 for ever [default: 300].
    #[arg(long, value_name = "SECONDS", value_parser = seconds, help_heading = "Bounds")]
    history_age: Option<Duration>,
    /// Cut off clients that read nothing for this many seconds, 0 for never [default: 30].
    ///
    /// Only clients that have data to read are cut off, such as an event of a watch.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, help_heading = "Bounds")]
    write_timeout: Option<Duration>,
    /// Answer 504 to request bodies that take longer, 0 for no limit [default: 60].
    #[arg(long, value_name = "SECONDS", value_parser = seconds, help_heading = "Bounds")]
    body_timeout: Option<Duration>,
}

impl Bounds {
    /// Sets what was given.
    pub(super) fn apply(&self, mut builder: ClusterBuilder) -> ClusterBuilder {
        // Only what was given is set, so that the defaults are in one place, the builder.
        if let Some(changes) = self.history {
            builder = builder.history(changes);
        }
        if let Some(mib) = self.history_size {
            builder = builder.history_bytes(mib.saturating_mul(1 << 20));
        }
        if let Some(age) = self.history_age {
            builder = builder.history_age(age);
        }
        if let Some(timeout) = self.write_timeout {
            builder = builder.write_timeout(timeout);
        }
        if let Some(timeout) = self.body_timeout {
            builder = builder.body_timeout(timeout);
        }
        builder
    }
}

fn seconds(text: &str) -> Result<Duration, &'static str> {
    let seconds = text.parse().map(Duration::from_secs);
    seconds.map_err(|_| "it is no number of seconds")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::parsed;

    #[test]
    fn bounds_have_units_and_may_be_zero() {
        let all = "--history 5 --history-size 1 --history-age 0 --write-timeout 2 --body-timeout 3";
        let words: Vec<&str> = all.split_whitespace().collect();
        let expected = Bounds {
            history: Some(5),
            history_size: Some(1),
            history_age: Some(Duration::ZERO),
            write_timeout: Some(Duration::from_secs(2)),
            body_timeout: Some(Duration::from_secs(3)),
        };
        assert_eq!(parsed::<Bounds>(&words).unwrap(), expected);
        assert!(parsed::<Bounds>(&["--body-timeout", "1s"]).is_err());
    }
}
