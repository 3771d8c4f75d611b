//! Writes metrics as text, in OpenMetrics or the older format of Prometheus.

use std::fmt;
use std::fmt::Write;

use http::{HeaderMap, header};
use lariat_controller::metrics::prometheus_client::encoding::text::encode;
use lariat_controller::metrics::prometheus_client::registry::Registry;

/// A format of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    OpenMetrics,
    Text,
}

impl Format {
    /// Chooses the format by the `Accept` header; OpenMetrics only if it is named.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let values = headers.get_all(header::ACCEPT).iter();
        let values = values.filter_map(|value| value.to_str().ok());
        let mut best = (0.0, Self::Text);
        for media in values.flat_map(|value| value.split(',')) {
            let mut parts = media.split(';').map(str::trim);
            let format = match parts.next().unwrap_or_default() {
                name if name.eq_ignore_ascii_case("application/openmetrics-text") => {
                    Self::OpenMetrics
                }
                "text/plain" | "text/*" | "*/*" => Self::Text,
                _ => continue,
            };
            // Prometheus lists all formats that it can read, with the preferred one at the highest quality.
            let quality = parts.find_map(|part| part.strip_prefix("q=")?.parse::<f64>().ok());
            let quality = quality.unwrap_or(1.0);
            // A quality of zero excludes a format, and of equal ones the first is taken.
            if quality > best.0 {
                best = (quality, format);
            }
        }
        best.1
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// Writes the metrics of a registry.
    pub(super) fn write(self, registry: &Registry) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, registry)?;
        Ok(match self {
            Self::OpenMetrics => text,
            Self::Text => older(&text),
        })
    }
}

/// Converts OpenMetrics to the older format.
///
/// In the older format, the name of a family is that of its series, with `_total` or `_info`, and there are neither
/// units nor an end marker.
fn older(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut help = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            // Written together with the type, which decides on the suffix of the name.
            help = rest.split_once(' ');
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, of) = rest.split_once(' ').unwrap_or((rest, ""));
            let (suffix, of) = match of {
                "counter" => ("_total", of),
                "info" => ("_info", "gauge"),
                "stateset" => ("", "gauge"),
                // Types that the older format does not have.
                "unknown" | "gaugehistogram" => ("", "untyped"),
                _ => ("", of),
            };
            if let Some((_, help)) = help.take().filter(|(of, _)| *of == name) {
                let _ = writeln!(out, "# HELP {name}{suffix} {help}");
            }
            let _ = writeln!(out, "# TYPE {name}{suffix} {of}");
        } else if !line.starts_with('#') {
            out.push_str(without_exemplar(line));
            out.push('\n');
        }
    }
    out
}

/// Returns a series without its exemplar, the part after ` # `.
fn without_exemplar(line: &str) -> &str {
    // The value of a label may contain the separator, so what is in quotes is skipped.
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_quoted,
            b'"' => is_quoted = !is_quoted,
            b'#' if !is_quoted => return line[..at].trim_end(),
            _ => {}
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use lariat_controller::metrics::prometheus_client::metrics::counter::Counter;
    use lariat_controller::metrics::prometheus_client::metrics::gauge::Gauge;

    use super::*;

    #[test]
    fn the_newer_format_is_sent_to_those_who_ask_for_it() {
        let check = |accept: &str, expected| {
            let mut headers = HeaderMap::new();
            if !accept.is_empty() {
                headers.insert(header::ACCEPT, accept.parse().unwrap());
            }
            assert_eq!(Format::of(&headers), expected, "{accept}");
        };
        check("", Format::Text);
        check("*/*", Format::Text);
        check("application/json", Format::Text);
        check("application/openmetrics-text", Format::OpenMetrics);
        let prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.4,*/*;q=0.2";
        check(prometheus, Format::OpenMetrics);
        check(
            "application/openmetrics-text;q=0.2,text/plain",
            Format::Text,
        );
        check("application/openmetrics-text;q=0", Format::Text);
    }

    #[test]
    fn families_of_the_older_format_are_named_as_their_series() {
        let mut registry = Registry::default();
        let (counter, gauge) = (Counter::<u64>::default(), Gauge::<i64>::default());
        counter.inc_by(3);
        registry.register("orders", "Orders taken", counter);
        registry.register("open", "Open ones", gauge);
        let text = Format::Text.write(&registry).unwrap();
        let expected = "# HELP orders_total Orders taken.\n# TYPE orders_total counter\norders_total 3\n\
                        # HELP open Open ones.\n# TYPE open gauge\nopen 0\n";
        assert_eq!(text, expected);
        let newer = Format::OpenMetrics.write(&registry).unwrap();
        assert!(newer.ends_with("# EOF\n"), "{newer}");
    }

    #[test]
    fn exemplars_are_left_out_of_the_older_format() {
        for (line, expected) in [
            ("orders_total 3", "orders_total 3"),
            ("orders_total 3 # {trace_id=\"a\"} 1", "orders_total 3"),
            (
                r##"o{a="x # \" y"} 3 # {t="a # b"} 1"##,
                r##"o{a="x # \" y"} 3"##,
            ),
            (r##"o{a="x # y"} 3"##, r##"o{a="x # y"} 3"##),
        ] {
            assert_eq!(without_exemplar(line), expected);
        }
    }
}
