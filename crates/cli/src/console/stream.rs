//! Server-sent events, as the HTML standard has them.

/// How many bytes of an event that is not complete are kept.
const LIMIT: usize = 32 * 1024 * 1024;

/// Takes bytes and finds the events in them.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// Bytes after the last complete line.
    rest: Vec<u8>,
    /// How many of them have no end of a line.
    seen: usize,
    name: String,
    data: String,
}

/// One event.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) name: String,
    pub(super) data: String,
}

impl Events {
    /// Takes in bytes, and returns complete events; `None` if one is too long.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Option<Vec<Event>> {
        self.rest.extend_from_slice(bytes);
        let mut events = Vec::new();
        let mut start = 0;
        // Only new bytes are searched: an overview is one long line, which comes in many pieces.
        while let Some(length) = self.rest[self.seen..]
            .iter()
            .position(|byte| *byte == b'\n')
        {
            let end = self.seen + length;
            // Whole lines are decoded, since a piece may end within a letter.
            let line = String::from_utf8_lossy(&self.rest[start..end]).into_owned();
            events.extend(self.line(line.strip_suffix('\r').unwrap_or(&line)));
            start = end + 1;
            self.seen = start;
        }
        self.rest.drain(..start);
        self.seen = self.rest.len();
        (self.rest.len() + self.data.len() <= LIMIT).then_some(events)
    }

    fn line(&mut self, line: &str) -> Option<Event> {
        if line.is_empty() {
            let (name, data) = (
                std::mem::take(&mut self.name),
                std::mem::take(&mut self.data),
            );
            // The standard discards an event without data, such as a keep-alive that is followed by an empty line.
            return (!data.is_empty()).then(|| Event {
                name,
                data: data.strip_suffix('\n').unwrap_or(&data).to_owned(),
            });
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        // One space after the colon does not belong to the value; further ones do.
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => {
                self.data.push_str(value);
                self.data.push('\n');
            }
            // A comment, or a field that says nothing here.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, data: &str) -> Event {
        Event {
            name: name.to_owned(),
            data: data.to_owned(),
        }
    }

    #[test]
    fn events_are_found_however_the_bytes_come() {
        let text = ": hello\r\nretry: 5\nevent: overview\r\ndata: {\"a\":\ndata: \"ü\"}\n\n\n\nevent:x\n\ndata:1\n\ndata: open";
        let expected = [event("overview", "{\"a\":\n\"ü\"}"), event("", "1")];
        for size in 1..text.len() {
            let mut events = Events::default();
            let found: Vec<Event> = text
                .as_bytes()
                .chunks(size)
                .flat_map(|chunk| events.push(chunk).unwrap())
                .collect();
            assert_eq!(found, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn an_event_without_an_end_is_not_kept_for_ever() {
        let mut events = Events::default();
        let piece = vec![b'x'; LIMIT / 2];
        assert_eq!(events.push(&piece), Some(Vec::new()));
        assert_eq!(events.push(&piece), Some(Vec::new()));
        assert_eq!(events.push(b"x"), None);
    }
}
