"""Python's client: what its users do most. Arguments: a kubeconfig, a namespace."""

import sys
from datetime import datetime, timezone

from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.rest import ApiException
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.configmaplock import ConfigMapLock

kubeconfig, namespace = sys.argv[1:]
config.load_kube_config(kubeconfig)
core, apps, custom = client.CoreV1Api(), client.AppsV1Api(), client.CustomObjectsApi()


def refused(code, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except ApiException as error:
        assert error.status == code, error
        return error
    raise AssertionError(f"not refused with {code}")


def configmap(name, **data):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels={"app": "x"}), data=data)


def objects():
    made = core.create_namespaced_config_map(namespace, configmap("a", k="v"))
    assert made.metadata.creation_timestamp.tzinfo is not None
    refused(409, core.create_namespaced_config_map, namespace, configmap("a"))
    made.data["k"] = "w"
    changed = core.replace_namespaced_config_map("a", namespace, made)
    refused(409, core.replace_namespaced_config_map, "a", namespace, made)
    patched = core.patch_namespaced_config_map("a", namespace, {"data": {"l": "x"}})
    assert patched.data == {"k": "w", "l": "x"} and patched.metadata.resource_version > changed.metadata.resource_version
    for name in "bcd":
        core.create_namespaced_config_map(namespace, configmap(name))
    page = core.list_namespaced_config_map(namespace, label_selector="app=x", limit=3)
    rest = core.list_namespaced_config_map(namespace, label_selector="app=x", limit=3, _continue=page.metadata._continue)
    assert [item.metadata.name for item in page.items + rest.items] == list("abcd")
    core.delete_collection_namespaced_config_map(namespace, label_selector="app=x")
    refused(404, core.read_namespaced_config_map, "a", namespace)


def watches():
    version = core.list_namespaced_config_map(namespace).metadata.resource_version
    core.create_namespaced_config_map(namespace, configmap("w", k="1"))
    core.patch_namespaced_config_map("w", namespace, {"data": {"k": "2"}})
    core.delete_namespaced_config_map("w", namespace)
    seen = []
    watching = watch.Watch()
    for event in watching.stream(core.list_namespaced_config_map, namespace, resource_version=version, timeout_seconds=10):
        if event["object"].metadata.name == "w":
            seen.append((event["type"], event["object"].data["k"]))
        if event["type"] == "DELETED":
            watching.stop()
    assert seen == [("ADDED", "1"), ("MODIFIED", "2"), ("DELETED", "2")], seen


def workloads():
    template = {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}
    manifest = {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "d"}}, "template": template},
    }
    utils.create_from_dict(client.ApiClient(), manifest, namespace=namespace)
    scale = apps.read_namespaced_deployment_scale("d", namespace)
    scale.spec.replicas = 3
    # Controllers may write the Deployment at the same time.
    scale.metadata.resource_version = None
    assert apps.replace_namespaced_deployment_scale("d", namespace, scale).spec.replicas == 3
    deployment = apps.read_namespaced_deployment("d", namespace)
    assert deployment.spec.replicas == 3 and deployment.spec.strategy.rolling_update.max_surge == "25%"
    # More than the controllers can have counted as updated by now.
    status = apps.patch_namespaced_deployment_status("d", namespace, {"status": {"replicas": 4}})
    assert status.status.replicas == 4
    manifest["spec"]["replicas"] = -1
    manifest["metadata"]["name"] = "e"
    error = refused(422, apps.create_namespaced_deployment, namespace, manifest)
    assert "spec.replicas" in error.body, error.body
    apps.delete_namespaced_deployment("d", namespace, propagation_policy="Background")


def custom_kinds():
    group = f"{namespace}.example.com"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{group}"},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{
                "name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    }
    definitions = client.ApiextensionsV1Api()
    definitions.create_custom_resource_definition(definition)
    named = f"metadata.name=things.{group}"
    watching = watch.Watch()
    for event in watching.stream(definitions.list_custom_resource_definition, field_selector=named, timeout_seconds=20):
        conditions = event["object"].status.conditions or []
        if any(each.type == "Established" and each.status == "True" for each in conditions):
            watching.stop()
    things = dynamic.DynamicClient(client.ApiClient()).resources.get(api_version=f"{group}/v1", kind="Thing")
    thing = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"size": 1}}
    things.create(body=thing, namespace=namespace)
    applied = things.server_side_apply(
        body={**thing, "spec": {"color": "red"}}, name="t", namespace=namespace, field_manager="py"
    )
    assert applied.spec.to_dict() == {"size": 1, "color": "red"}, applied
    custom.patch_namespaced_custom_object_status(group, "v1", namespace, "things", "t", {"status": {"ready": True}})
    assert custom.get_namespaced_custom_object(group, "v1", namespace, "things", "t")["status"] == {"ready": True}
    definitions.delete_custom_resource_definition(f"things.{group}")


def leases():
    now = datetime.now(timezone.utc)
    spec = client.V1LeaseSpec(holder_identity="me", lease_duration_seconds=15, acquire_time=now, renew_time=now)
    lease = client.V1Lease(metadata=client.V1ObjectMeta(name="l"), spec=spec)
    coordination = client.CoordinationV1Api()
    made = coordination.create_namespaced_lease(namespace, lease)
    assert made.spec.acquire_time == now, (made.spec.acquire_time, now)
    lock = ConfigMapLock("elected", namespace, "python")
    election = electionconfig.Config(
        lock, lease_duration=3, renew_deadline=2, retry_period=1, onstarted_leading=print, onstopped_leading=print
    )
    elector = leaderelection.LeaderElection(election)
    assert elector.try_acquire_or_renew()
    holder = core.read_namespaced_config_map("elected", namespace)
    assert "python" in holder.metadata.annotations["control-plane.alpha.kubernetes.io/leader"]


def access():
    review = client.V1SelfSubjectAccessReview(
        spec={"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": namespace}}
    )
    assert client.AuthorizationV1Api().create_self_subject_access_review(review).status.allowed
    assert client.VersionApi().get_code().major == "1"
    groups = {group.name for group in client.ApisApi().get_api_versions().groups}
    assert {"apps", "batch", "policy"} <= groups, groups


for check in (objects, watches, workloads, custom_kinds, leases, access):
    check()
    print("passed", check.__name__, flush=True)
