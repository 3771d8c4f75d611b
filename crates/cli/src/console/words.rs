//! Numbers as people read them.

use lariat_console::api::Quantiles;

/// Writes seconds with the two units that matter.
pub(crate) fn duration(seconds: f64) -> String {
    let seconds = seconds.max(0.0);
    if seconds == 0.0 {
        return "0s".to_owned();
    }
    if seconds < 0.001 {
        return "<1ms".to_owned();
    }
    // From here on the format would round up to `1000ms`; the same goes for the limits below.
    if seconds < 0.9995 {
        return format!("{:.0}ms", seconds * 1000.0);
    }
    if seconds < 9.95 {
        return format!("{seconds:.1}s");
    }
    let whole = whole(seconds);
    let (minutes, hours, days) = (whole / 60, whole / 3600, whole / 86400);
    match whole {
        0..60 => format!("{whole}s"),
        60..3600 => format!("{minutes}m{:02}s", whole % 60),
        3600..86400 => format!("{hours}h{:02}m", minutes % 60),
        _ => format!("{days}d{:02}h", hours % 24),
    }
}

/// Writes how often something happens in a second.
pub(crate) fn rate(per_second: f64) -> String {
    match per_second {
        rate if rate <= 0.0 => "0".to_owned(),
        // The format would round these down to `0.0`, which looks like none at all.
        rate if rate < 0.05 => "<0.1".to_owned(),
        rate if rate < 99.95 => format!("{rate:.1}"),
        rate => amount(whole(rate)),
    }
}

/// Writes a number in at most five letters.
pub(crate) fn amount(number: u64) -> String {
    let mut number = number;
    for unit in ["", "k", "M", "G"] {
        if number < 10_000 {
            return format!("{number}{unit}");
        }
        number /= 1000;
    }
    format!("{number}T")
}

/// Writes a number with its noun.
pub(crate) fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// Writes a size.
pub(crate) fn bytes(size: usize) -> String {
    let mut rest = size;
    let mut below = 0;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if rest < 1024 {
            // Three digits are enough, and bytes have no fraction.
            let is_exact = unit == "B" || rest >= 100;
            return if is_exact {
                format!("{rest} {unit}")
            } else {
                format!("{rest}.{} {unit}", below * 10 / 1024)
            };
        }
        below = rest % 1024;
        rest /= 1024;
    }
    format!("{rest} TiB")
}

/// Writes a quantile, which is an upper bound; `-` if nothing was measured.
pub(crate) fn quantile(of: &Quantiles, value: f64) -> String {
    if of.count == 0 {
        "-".to_owned()
    } else {
        duration(value)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is not negative, and a float that is too large becomes the largest number"
)]
fn whole(number: f64) -> u64 {
    number.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units_at_most() {
        for (seconds, expected) in [
            (0.0, "0s"),
            (-1.0, "0s"),
            (0.0002, "<1ms"),
            (0.0124, "12ms"),
            (0.9999, "1.0s"),
            (9.94, "9.9s"),
            (59.6, "1m00s"),
            (61.0, "1m01s"),
            (7500.0, "2h05m"),
            (90_000.0, "1d01h"),
            (f64::MAX, "213503982334601d07h"),
        ] {
            assert_eq!(duration(seconds), expected);
        }
    }

    #[test]
    fn rates_amounts_and_sizes_are_short() {
        let rates = [0.0, 0.01, 0.3, 99.9, 100.4, 12_345.0].map(rate);
        assert_eq!(rates, ["0", "<0.1", "0.3", "99.9", "100", "12k"]);
        let amounts = [0, 9999, 10_000, 12_345_678, u64::MAX].map(amount);
        assert_eq!(amounts, ["0", "9999", "10k", "12M", "18446744T"]);
        let sizes = [0, 1023, 1536, 12_900_000, 200 << 20, 5 << 40].map(bytes);
        assert_eq!(
            sizes,
            ["0 B", "1023 B", "1.5 KiB", "12.3 MiB", "200 MiB", "5 TiB"]
        );
        assert_eq!(counted(1, "key"), "1 key");
        assert_eq!(counted(0, "key"), "0 keys");
    }
}
