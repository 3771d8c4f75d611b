//! Writes metric families.

use std::fmt;

use prometheus_client::encoding::{
    DescriptorEncoder, EncodeGaugeValue, EncodeLabelSet, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

use super::histogram::Measured;

/// The encoder of families. A family without series is left out.
pub(super) struct Output<'a>(DescriptorEncoder<'a>);

/// The head of a family.
#[derive(Clone, Copy)]
struct Family<'a> {
    name: &'a str,
    help: &'a str,
    kind: MetricType,
}

impl<'a> Output<'a> {
    pub(super) fn new(encoder: DescriptorEncoder<'a>) -> Self {
        Self(encoder)
    }

    /// Writes a family of counters. The name must end in `_total`.
    pub(super) fn counters<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        series: impl IntoIterator<Item = (L, u64)>,
    ) -> fmt::Result {
        let stem = name.strip_suffix("_total");
        debug_assert!(
            stem.is_some(),
            "{name} would be written with another suffix"
        );
        let family = Family {
            // The encoder appends the suffix.
            name: stem.unwrap_or(name),
            help,
            kind: MetricType::Counter,
        };
        self.family(family, series, |encoder, value| {
            encoder.encode_counter::<NoLabelSet, u64, f64>(&value, None)
        })
    }

    /// Writes a family of gauges.
    pub(super) fn gauges<L: EncodeLabelSet, V: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        series: impl IntoIterator<Item = (L, V)>,
    ) -> fmt::Result {
        let kind = MetricType::Gauge;
        let family = Family { name, help, kind };
        self.family(family, series, |encoder, value| {
            encoder.encode_gauge(&value)
        })
    }

    /// Writes a family of histograms.
    pub(super) fn histograms<L: EncodeLabelSet, H: Into<Measured>>(
        &mut self,
        name: &str,
        help: &str,
        series: impl IntoIterator<Item = (L, H)>,
    ) -> fmt::Result {
        let kind = MetricType::Histogram;
        let family = Family { name, help, kind };
        self.family(family, series, |encoder, value| {
            let Measured {
                sum,
                count,
                buckets,
            } = value.into();
            encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
        })
    }

    fn family<L: EncodeLabelSet, V>(
        &mut self,
        family: Family<'_>,
        series: impl IntoIterator<Item = (L, V)>,
        write: impl Fn(&mut MetricEncoder<'_>, V) -> fmt::Result,
    ) -> fmt::Result {
        let mut series = series.into_iter().peekable();
        if series.peek().is_none() {
            return Ok(());
        }
        let (name, unit) = unit(family.name);
        let (unit, help) = (unit.as_ref(), family.help);
        let mut encoder = self.0.encode_descriptor(name, help, unit, family.kind)?;
        for (labels, value) in series {
            write(&mut encoder.encode_family(&labels)?, value)?;
        }
        Ok(())
    }
}

/// Splits the unit off a name, because the encoder appends it again.
fn unit(name: &str) -> (&str, Option<Unit>) {
    let units = [("_seconds", Unit::Seconds), ("_bytes", Unit::Bytes)];
    for (suffix, unit) in units {
        if let Some(name) = name.strip_suffix(suffix) {
            return (name, Some(unit));
        }
    }
    (name, None)
}
