//! The output of a program that may leave it open to others.
//!
//! A process that a plugin has started may keep the plugin's output open after the plugin has ended. So the end of the
//! output is not waited for: a plugin has printed everything when it ends.

use std::io::{self, Read};
use std::process::ChildStdout;

/// The most that a plugin may print. Credentials have some kilobytes.
const MOST: usize = 1024 * 1024;

/// The output of a program so far.
pub(crate) struct Printed {
    stdout: Output,
    bytes: Vec<u8>,
}

impl Printed {
    pub(crate) fn new(stdout: ChildStdout) -> io::Result<Self> {
        let (stdout, bytes) = (Output::new(stdout)?, Vec::new());
        Ok(Self { stdout, bytes })
    }

    /// Reads what has been printed, and waits for no more.
    pub(crate) fn read(&mut self) -> io::Result<()> {
        let mut buffer = [0; 8192];
        loop {
            match self.stdout.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(length) => self.bytes.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if self.bytes.len() > MOST {
                return Err(io::Error::other("it prints more than a mebibyte"));
            }
        }
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// A pipe that is read without waiting.
#[cfg(unix)]
struct Output(ChildStdout);

#[cfg(unix)]
impl Output {
    fn new(stdout: ChildStdout) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&stdout, true)?;
        Ok(Self(stdout))
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

/// A pipe that a thread reads, since here it cannot be read without waiting.
///
/// The thread ends with the last process that has the output open.
#[cfg(not(unix))]
struct Output(std::sync::mpsc::Receiver<io::Result<Vec<u8>>>);

#[cfg(not(unix))]
impl Output {
    fn new(mut stdout: ChildStdout) -> io::Result<Self> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        std::thread::Builder::new().spawn(move || {
            let mut buffer = [0; 8192];
            loop {
                let read = stdout
                    .read(&mut buffer)
                    .map(|length| buffer[..length].to_vec());
                let is_last = !matches!(&read, Ok(bytes) if !bytes.is_empty());
                if sender.send(read).is_err() || is_last {
                    return;
                }
            }
        })?;
        Ok(Self(receiver))
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        use std::sync::mpsc::RecvTimeoutError::{Disconnected, Timeout};
        // Long enough for what was printed before the program ended.
        match self.0.recv_timeout(std::time::Duration::from_millis(100)) {
            Ok(read) => read.map(|bytes| {
                buffer[..bytes.len()].copy_from_slice(&bytes);
                bytes.len()
            }),
            Err(Timeout) => Err(io::ErrorKind::WouldBlock.into()),
            Err(Disconnected) => Ok(0),
        }
    }
}
