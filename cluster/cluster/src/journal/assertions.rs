//! Assertions on the requests of a program.

use std::collections::BTreeMap;
use std::time::Duration;

use super::report::RequestTable;
use super::select::busiest;
use super::{
    Selection,
    entries::{Journal, RecordedRequest},
};

impl Journal {
    /// Checks that no verb and path has more than `most` requests within `per`.
    ///
    /// # Panics
    ///
    /// One has; the message shows the requests.
    #[track_caller]
    pub fn assert_no_hot_loop(&self, most: usize, per: Duration) {
        self.select().assert_no_hot_loop(most, per);
    }

    /// Checks that exactly one watch of a resource was started.
    ///
    /// # Panics
    ///
    /// There were more, or none; the message shows them.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kube::Api;
    /// use lariat::cluster::Cluster;
    ///
    /// let cluster = Cluster::builder().start().await?;
    /// let pods: Api<Pod> = Api::all(cluster.client());
    /// let _events = pods.watch(&Default::default(), "0").await?;
    /// cluster.journal().assert_one_watch("pods");
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn assert_one_watch(&self, resource: &str) {
        self.select().assert_one_watch(resource);
    }
}

impl Selection {
    /// Checks that no verb and path has more than `most` of these within `per`.
    ///
    /// # Panics
    ///
    /// One has; the message shows the requests.
    #[track_caller]
    pub fn assert_no_hot_loop(&self, most: usize, per: Duration) {
        let mut by_path: BTreeMap<(String, String), Vec<RecordedRequest>> = BTreeMap::new();
        for request in self.requests() {
            let key = (request.verb.clone(), request.path.clone());
            by_path.entry(key).or_default().push(request);
        }
        for ((verb, path), requests) in &by_path {
            let times: Vec<Duration> = requests.iter().map(|request| request.at).collect();
            let (from, count) = busiest(&times, per);
            assert!(
                count <= most,
                "hot loop: {verb} {path} came {count} times within {per:?}, of {most} allowed:\n{}",
                RequestTable(&requests[from..from + count]),
            );
        }
    }

    /// Checks that exactly one of these requests is a watch of a resource.
    ///
    /// # Panics
    ///
    /// More are, or none; the message shows them.
    #[track_caller]
    pub fn assert_one_watch(&self, resource: &str) {
        let of_resource = self.clone().resource(resource);
        let watches = of_resource.clone().verb("watch").requests();
        if watches.is_empty() {
            panic!(
                "no watch of {resource}; its requests were:\n{}",
                RequestTable(&of_resource.requests())
            );
        }
        assert!(
            watches.len() == 1,
            "{} watches of {resource} instead of one:\n{}",
            watches.len(),
            RequestTable(&watches),
        );
    }

    /// Checks that exactly `expected` requests are selected.
    ///
    /// # Panics
    ///
    /// There are more or fewer; the message shows them.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use k8s_openapi::api::core::v1::Namespace;
    /// use kube::Api;
    /// use lariat::cluster::Cluster;
    ///
    /// let cluster = Cluster::builder().start().await?;
    /// let namespaces: Api<Namespace> = Api::all(cluster.client());
    /// namespaces.get("default").await?;
    /// cluster.journal().select().verb("get").resource("namespaces").assert_count(1);
    /// cluster.journal().select().verb("watch").assert_count(0);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn assert_count(&self, expected: usize) {
        let requests = self.requests();
        assert!(
            requests.len() == expected,
            "{} requests instead of {expected}:\n{}",
            requests.len(),
            RequestTable(&requests),
        );
    }
}
