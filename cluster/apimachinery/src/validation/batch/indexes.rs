//! Indexes of Pods, written as in `1,3-5,7`.

/// Counts completion indexes, all of which are below the number of completions.
///
/// Returns the error if the text is invalid.
pub(super) fn count(indexes: &str, completions: i64) -> Result<i64, String> {
    let mut total = 0;
    let mut last = None;
    // `validateIndexesFormat`. Splitting an empty text gives one empty part, which would be no number.
    for part in indexes.split(',').filter(|_| !indexes.is_empty()) {
        let (first, end) = interval(part, completions)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(format!(
                "non-increasing order, previous: {last}, current: {first}"
            ));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

fn interval(text: &str, completions: i64) -> Result<(i64, i64), String> {
    let limits: Vec<&str> = text.split('-').collect();
    if limits.len() > 2 {
        return Err(format!(
            "the fragment {text:?} violates the requirement that an index interval can have at most \
             two parts separated by '-'"
        ));
    }
    let read = |text: &str| match text.parse::<i64>() {
        Err(_) => Err(format!(
            "cannot convert string to integer for index: {text:?}"
        )),
        Ok(index) if index >= completions => Err(format!("too large index: {text:?}")),
        Ok(index) => Ok(index),
    };
    let first = read(limits[0])?;
    let Some(end) = limits.get(1) else {
        return Ok((first, first));
    };
    let end = read(end)?;
    // An interval of one index is written as a number, so `3-3` is an error too.
    if first >= end {
        return Err(format!(
            "non-increasing order, previous: {first}, current: {end}"
        ));
    }
    Ok((first, end))
}

/// Finds an index that is in two lists; malformed ones count for nothing.
///
/// Lists that do not increase are not searched completely, as in Go.
pub(super) fn overlap(completed: &str, failed: &str, completions: i64) -> Option<i64> {
    // `validateFailedIndexesNotOverlapCompleted`. Errors of the form are reported where each list is checked.
    let read = |text: &str| -> Vec<(i64, i64)> {
        let parts = text.split(',').map(|part| interval(part, completions));
        parts.filter_map(Result::ok).collect()
    };
    let (completed, failed) = (read(completed), read(failed));
    let (mut done, mut lost) = (completed.iter().peekable(), failed.iter().peekable());
    while let (Some((from, to)), Some((first, end))) = (done.peek(), lost.peek()) {
        if from <= end && first <= to {
            return Some(*from.max(first));
        }
        if from <= first {
            done.next();
        } else {
            lost.next();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_increase_and_end_below_the_count() {
        for (text, expected) in [
            ("", Ok(0)),
            ("1,3-5,7", Ok(5)),
            ("8", Err("too large index: \"8\"")),
            (
                "1-",
                Err("cannot convert string to integer for index: \"\""),
            ),
            ("3,2", Err("non-increasing order, previous: 3, current: 2")),
            ("4-2", Err("non-increasing order, previous: 4, current: 2")),
        ] {
            assert_eq!(count(text, 8), expected.map_err(str::to_owned), "{text}");
        }
        assert_eq!(overlap("1,3-5", "2,4", 8), Some(4));
        assert_eq!(overlap("1,3-5", "2,x", 8), None);
        // Both lists are walked once, so what does not increase hides what comes behind it.
        assert_eq!(overlap("4,1", "1", 8), None);
    }
}
