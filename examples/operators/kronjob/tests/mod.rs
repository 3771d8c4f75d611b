//! KronJobs on the embedded cluster; hours of them, on a paused clock.

mod bench;

mod due;
mod faults;
mod kept;

use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
