//! A strict parser of the text that a registry writes.

use std::collections::{BTreeMap, BTreeSet};

use lariat_controller::metrics;
use lariat_controller::metrics::prometheus_client::encoding::text;
use lariat_controller::metrics::prometheus_client::registry::Registry;

use crate::bench::Bench;

/// A text that was found to be valid OpenMetrics.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    /// In the order of the text.
    pub(crate) families: Vec<Family>,
}

/// Series of one name.
#[derive(Debug, Default)]
pub(crate) struct Family {
    pub(crate) name: String,
    pub(crate) of_type: String,
    unit: String,
    help: String,
    pub(crate) samples: Vec<Sample>,
}

/// One line.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) name: String,
    /// In the order of the text.
    pub(crate) labels: Labels,
    pub(crate) value: f64,
}

/// Names and values.
type Labels = Vec<(String, String)>;

impl Exposition {
    /// Reads a text; anything that is not as the format wants it panics.
    pub(crate) fn of(text: &str) -> Self {
        let body = text.strip_suffix("# EOF\n").expect("it ends with its end");
        let mut families: Vec<Family> = Vec::new();
        for line in body.lines() {
            let Some(head) = line.strip_prefix("# ") else {
                let family = families.last_mut().expect("samples follow a head");
                family.samples.push(Sample::of(line));
                continue;
            };
            let mut words = head.splitn(3, ' ');
            let mut word = || words.next().expect("three words").to_owned();
            let (what, name, rest) = (word(), word(), word());
            if families.last().is_none_or(|family| family.name != name) {
                let family = Family {
                    name,
                    ..Family::default()
                };
                families.push(family);
            }
            families.last_mut().expect("there is one").head(&what, rest);
        }
        let exposition = Self { families };
        exposition.check();
        exposition
    }

    /// Sums the samples of a name that have these labels; `None` if there are none.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let samples = self.families.iter().flat_map(|family| &family.samples);
        let wanted = samples.filter(|sample| sample.name == name && sample.has(labels));
        wanted.map(|sample| sample.value).reduce(|a, b| a + b)
    }

    /// Returns the values a label has.
    pub(crate) fn values_of(&self, label: &str) -> BTreeSet<&str> {
        let samples = self.families.iter().flat_map(|family| &family.samples);
        let labels = samples.flat_map(|sample| &sample.labels);
        let of = labels.filter(|(name, _)| name == label);
        of.map(|(_, value)| value.as_str()).collect()
    }

    fn check(&self) {
        let mut names = BTreeSet::new();
        for family in &self.families {
            assert!(names.insert(&family.name), "{} is there twice", family.name);
            family.check();
        }
    }
}

impl Family {
    fn head(&mut self, what: &str, rest: String) {
        assert!(self.samples.is_empty(), "{what} after samples");
        let place = match what {
            "HELP" => &mut self.help,
            "TYPE" => &mut self.of_type,
            "UNIT" => &mut self.unit,
            other => panic!("what is {other}?"),
        };
        assert!(place.is_empty(), "{what} of {} is there twice", self.name);
        *place = rest;
    }

    fn check(&self) {
        let name = &self.name;
        assert!(is_name(name), "{name}");
        assert!(!self.samples.is_empty(), "{name} is empty");
        assert!(!self.help.is_empty(), "{name} has no help");
        assert!(
            self.unit.is_empty() || name.ends_with(&format!("_{}", self.unit)),
            "{name} does not end in its unit"
        );
        let suffixes: &[&str] = match self.of_type.as_str() {
            "counter" => &["_total"],
            "gauge" => &[""],
            "histogram" => &["_bucket", "_sum", "_count"],
            other => panic!("{name} is of type {other}"),
        };
        let mut series = BTreeSet::new();
        for sample in &self.samples {
            let suffix = sample
                .name
                .strip_prefix(name.as_str())
                .expect("its family's");
            assert!(suffixes.contains(&suffix), "{} in {name}", sample.name);
            assert!(self.of_type == "gauge" || sample.value >= 0.0);
            let mut labels = sample.labels.clone();
            labels.sort();
            assert!(labels.windows(2).all(|pair| pair[0].0 != pair[1].0));
            assert!(labels.iter().all(|(label, _)| is_name(label)));
            assert!(
                series.insert((&sample.name, labels)),
                "{sample:?} is there twice"
            );
        }
        if self.of_type == "histogram" {
            self.check_buckets();
        }
    }

    fn check_buckets(&self) {
        let mut buckets: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
        let of = |suffix| format!("{}{suffix}", self.name);
        for sample in self
            .samples
            .iter()
            .filter(|each| each.name == of("_bucket"))
        {
            let (le, others) = sample
                .labels
                .iter()
                .cloned()
                .partition::<Vec<_>, _>(|label| label.0 == "le");
            let [(_, le)] = &le[..] else {
                panic!("{sample:?} has no bound");
            };
            let bound = le.replace("+Inf", "inf").parse().expect("a number");
            buckets
                .entry(others)
                .or_default()
                .push((bound, sample.value));
        }
        let counts: Vec<&Sample> = self
            .samples
            .iter()
            .filter(|each| each.name == of("_count"))
            .collect();
        assert_eq!(counts.len(), buckets.len());
        for count in counts {
            let buckets = &buckets[&count.labels];
            let grows = |pair: &[(f64, f64)]| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1;
            assert!(buckets.windows(2).all(grows), "{buckets:?}");
            assert_eq!(buckets.last(), Some(&(f64::INFINITY, count.value)));
        }
    }
}

impl Sample {
    /// Reads `name{label="value",…} number`.
    fn of(line: &str) -> Self {
        let (name, mut rest) = line.split_once('{').expect("every series has labels");
        let mut labels = Vec::new();
        while !rest.starts_with('}') {
            let (label, quoted) = rest.split_once("=\"").expect("a label");
            let (value, length) = unquote(quoted);
            labels.push((label.to_owned(), value));
            rest = &quoted[length..];
            rest = rest.strip_prefix(',').unwrap_or(rest);
        }
        let value = rest.strip_prefix("} ").expect("a space before the value");
        Self {
            name: name.to_owned(),
            labels,
            value: value.parse().expect("a number"),
        }
    }

    fn has(&self, labels: &[(&str, &str)]) -> bool {
        labels.iter().all(|(name, value)| {
            let mut own = self.labels.iter();
            own.any(|(label, own)| label == name && own == value)
        })
    }
}

/// Returns the content of a quoted string, and its length with the closing quote.
fn unquote(text: &str) -> (String, usize) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return (value, at + 1),
            '\\' => match chars.next().expect("something is escaped").1 {
                'n' => value.push('\n'),
                escaped @ ('"' | '\\') => value.push(escaped),
                other => panic!("{other} is escaped"),
            },
            char => value.push(char),
        }
    }
    panic!("{text} has no end");
}

fn is_name(name: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(first) && name.chars().all(|c| first(c) || c.is_ascii_digit())
}

pub(crate) const KIND: (&str, &str) = ("kind", "v1 ConfigMap");

/// Reads a registry as Prometheus would.
pub(crate) fn scrape(registry: &Registry) -> Exposition {
    let mut body = String::new();
    text::encode(&mut body, registry).expect("a string takes everything");
    Exposition::of(&body)
}

/// A registry with a collector of a bench's factory.
pub(crate) fn registry_of(bench: &Bench) -> Registry {
    let mut registry = Registry::default();
    metrics::register(&mut registry, &bench.factory);
    registry
}

/// Families with their types and the names of their labels.
pub(crate) fn shape(exposition: &Exposition) -> String {
    let family = |family: &Family| {
        let labels = family.samples[0].labels.iter();
        let labels: Vec<&str> = labels.map(|(name, _)| name.as_str()).collect();
        let name = &family.samples[0].name;
        format!("{} {name}{{{}}}\n", family.of_type, labels.join(","))
    };
    exposition.families.iter().map(family).collect()
}

/// The first sample of each family; of histograms that is the sum.
pub(crate) const SHAPE: &str = "\
gauge workqueue_depth{ctx,name,controller,priority}
counter workqueue_adds_total{ctx,name,controller}
histogram workqueue_queue_duration_seconds_sum{ctx,name,controller}
histogram workqueue_work_duration_seconds_sum{ctx,name,controller}
gauge workqueue_unfinished_work_seconds{ctx,name,controller}
gauge workqueue_longest_running_processor_seconds{ctx,name,controller}
counter workqueue_retries_total{ctx,name,controller}
counter controller_runtime_reconcile_total{ctx,controller,result}
counter controller_runtime_reconcile_errors_total{ctx,controller}
counter controller_runtime_terminal_reconcile_errors_total{ctx,controller}
counter controller_runtime_reconcile_panics_total{ctx,controller}
counter controller_runtime_reconcile_timeouts_total{ctx,controller}
histogram controller_runtime_reconcile_time_seconds_sum{ctx,controller}
gauge controller_runtime_max_concurrent_reconciles{ctx,controller}
gauge controller_runtime_active_workers{ctx,controller}
gauge lasso_controller_total_handler_execution{ctx,controller_name,handler_name,has_error}
histogram lasso_controller_reconcile_time_seconds_sum{ctx,controller_name,handler_name,has_error}
gauge lasso_controller_total_cached_object{ctx,group,version,kind}
counter lariat_handler_calls_total{ctx,kind,handler,result}
histogram lariat_handler_time_seconds_sum{ctx,kind,handler}
histogram lariat_handler_lag_seconds_sum{ctx,kind,handler}
counter lariat_handler_retries_total{ctx,kind,handler}
counter lariat_handler_exhausted_total{ctx,kind,handler}
gauge lariat_blocked_threads{ctx,kind}
gauge lariat_handler_failing_keys{ctx,kind,handler}
gauge lariat_handler_given_up_keys{ctx,kind,handler}
gauge lariat_hot_loops{ctx,kind}
gauge lariat_cache_objects{ctx,kind}
gauge lariat_cache_bytes{ctx,kind}
counter lariat_cache_decodes_total{ctx,kind}
counter lariat_cache_hits_total{ctx,kind}
counter lariat_cache_lists_total{ctx,kind}
counter lariat_reflector_lists_total{ctx,kind}
counter lariat_reflector_watches_total{ctx,kind}
counter lariat_reflector_received_bytes_total{ctx,kind}
counter lariat_reflector_reconnects_total{ctx,kind,reason}
gauge lariat_reflector_last_event_age_seconds{ctx,kind}
gauge lariat_reflector_synced{ctx,kind}
gauge lariat_reflector_unwatched_seconds{ctx,kind}
gauge lariat_reflector_blind_seconds{ctx,kind}
counter lariat_reflector_unreadable_total{ctx,kind}
counter rest_client_requests_total{ctx,code,method,host}
histogram rest_client_request_duration_seconds_sum{ctx,verb,host}
";
