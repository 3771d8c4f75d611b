//! What `--help` says.

/// `lariat --help`.
pub(crate) const LARIAT: &str = "\
Tools for Kubernetes controllers: an API server in one process, and operators to begin with.

Usage: lariat COMMAND [OPTIONS]

Commands:
  cluster    serve a cluster until Ctrl-C
  new        write an operator to begin with
  query      filter, sort, page and count the objects of a cluster
  replay     show what a flight recorder recorded

Options:
  -h, --help       print this, or with a command what it does
  -V, --version    print the version

Try: lariat cluster --kubeconfig /tmp/lariat.kubeconfig
     lariat new shop-operator
     lariat query pods 'status.phase!=Running' --all-namespaces
";

/// `lariat cluster --help`.
pub(crate) const CLUSTER: &str = "\
Serves a cluster until Ctrl-C or SIGTERM; a second one ends it at once.

Usage: lariat cluster [OPTIONS]

When it serves it prints one line on stdout, `ready URL`; everything else goes to stderr.

Options:
      --listen ADDRESS:PORT  where to serve [default: 127.0.0.1:8001]; port 0 takes a free one
      --kubeconfig FILE      put a context lariat into a kubeconfig, beside what it has, and make it
                             the current one, as kind does; at the end it is taken out again, and
                             then no context is the current one
      --data FILE            keep the objects in a file, and begin with what it holds
      --seed FILE            create the objects of a YAML or JSON file, or of all such files in a
                             folder; may be repeated. Definitions of custom kinds come first, then
                             namespaces, then the rest; what is there already is updated
      --load WHAT            fill it with generated objects, such as pods=20000 or
                             pods=500,configmaps=100,nodes=20,namespaces=5,seed=7
      --simulate-workloads   run Deployments, Jobs and the like as if there were nodes
      --tls                  serve HTTPS, with a certificate made for it
      --token-file FILE      let clients with the bearer token in this file do everything, and judge
                             others by RBAC; kubectl shows its token only over HTTPS (--tls)
      --token TOKEN          the same with the token itself, which other users of the machine see in
                             the list of processes; LARIAT_TOKEN in the environment does as well
      --admin                serve what controls the cluster itself: faults, time, the journal
  -h, --help                 print this

Without a token whoever reaches the address may do everything. Web pages are kept out: requests with
an Origin are refused, and on a loopback address those for other hosts than addresses and localhost.

Example:
  lariat cluster --listen 127.0.0.1:0 --kubeconfig kubeconfig --seed manifests/
  kubectl --kubeconfig kubeconfig get namespaces
";

/// `lariat new --help`.
pub(crate) const NEW: &str = "\
Writes an operator to begin with: a program, its kind, manifests, and a test that passes.

Usage: lariat new NAME [OPTIONS]

Options:
      --kind KIND    the kind it manages [default: from NAME: Shop for shop-operator]
      --group GROUP  the API group of the kind, a domain of yours [default: demo.dev]
      --path FOLDER  where to write it [default: NAME]; it must be new, or empty
      --lariat FROM  where it takes Lariat from, which is not published yet: a checkout, which
                     Cargo.toml then names by the path from the project to it, or the URL of a
                     repository, maybe with #REVISION [default: the checkout of this program]
  -h, --help         print this

Example:
  lariat new shop-operator --group shop.example.com
  cd shop-operator && cargo test
";

/// `lariat query --help`.
pub(crate) const QUERY: &str = "\
Reads a kind of a cluster once, and shows the objects that meet all filters.

Usage: lariat query KIND [FILTER]... [OPTIONS]

KIND is a kind, its plural or a short name, with the group behind a dot if several have it: pods, po,
Deployment, deployments.apps. The cluster is that of KUBECONFIG, ~/.kube/config, or of the pod.

A FILTER is field=value, or has another operator: != ~ !~ (has, lacks the text) < <= > >=, 'field in
(a,b)', 'field notin (a,b)', 'field contains a'; the field alone if it exists, !field if it does not.
Of filters with commas between them one has to hold. Quote a value with spaces or commas: name='a b'.
A field is a path, as spec.nodeName, spec.containers[*].image or metadata.labels[app]; its type comes
from the schemas of the server.

Options:
  -n, --namespace NAME    the objects of this namespace [default: that of the kubeconfig]
  -A, --all-namespaces    the objects of all namespaces
      --sort FIELD,...    sort by fields; a minus in front sorts backwards
      --page N            show one page, with the total
      --page-size N       how many objects a page has [default: 50 with --page, else all]
      --summary FIELD,... count by the values of fields; the objects are left out without --page or
                          --page-size
      --search WORDS      objects with all these words in their names, labels, or a text field that
                          is named; the last may be the beginning of a word
      --columns FIELD,... what to show, instead of what is usual for the kind
      --field FIELD:TYPE  the type of a field: text, natural (pod-9 before pod-10), integer, real,
                          boolean, quantity, time or ip; may be repeated
  -o, --output FORM       table, wide, name or json [default: table]
      --kubeconfig FILE   the cluster of this file
      --timeout SECONDS   how long reading may take [default: 300]
  -h, --help              print this

Example:
  lariat query pods -A status.phase=Running --sort spec.nodeName,-metadata.name --page 1
  lariat query pods -A --summary spec.nodeName
";

/// `lariat replay --help`.
pub(crate) const REPLAY: &str = "\
Shows what the flight recorder of a process recorded, as a timeline; times are UTC.

Usage: lariat replay FILE [OPTIONS]

Options:
      --kind KIND     only this kind, as ConfigMap or 'apps/v1 Deployment'
      --key KEY       only this object, as namespace/name; namespace/ is all of a namespace
      --handler NAME  only calls of this handler, and keys that are due for it
      --since TIME    from this time on: 2026-11-22T02:13:00Z, 90s after the process began, or -10m,
                      which is before the end of the recording
      --until TIME    up to this time
      --summary       sums instead: counts by kind and handler, what ended lists and watches, the
                      longest waits and calls, the hottest keys
      --check         give what was recorded to the queues and reflectors of this version, and say
                      what the first decision is that they make otherwise; of the filters it takes
                      --kind alone
  -h, --help          print this

Ends with 0; with 1 if the file cannot be read; with 3 if --check finds a difference.

Example:
  lariat replay /var/run/op.flight --key shop/web-0 --since -10m
";

/// `lariat --version`.
pub(crate) const VERSION: &str = concat!("lariat ", env!("CARGO_PKG_VERSION"), "\n");
