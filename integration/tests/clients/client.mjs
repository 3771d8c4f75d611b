// JavaScript's client: what its users do most. Arguments: a kubeconfig, a namespace.

import { createRequire } from "node:module";
import { strict as assert } from "node:assert";

const [kubeconfig, namespace, modules] = process.argv.slice(2);
const k8s = createRequire(`${modules}/`)("@kubernetes/client-node");
const config = new k8s.KubeConfig();
config.loadFromFile(kubeconfig);
const core = config.makeApiClient(k8s.CoreV1Api);
const apps = config.makeApiClient(k8s.AppsV1Api);
const custom = config.makeApiClient(k8s.CustomObjectsApi);
const objects = k8s.KubernetesObjectApi.makeApiClient(config);

const refused = (code, call) => assert.rejects(call, (error) => error.code === code);
const configmap = (name, data) => ({ metadata: { name, labels: { app: "x" } }, data });

async function maps() {
    const made = await core.createNamespacedConfigMap({ namespace, body: configmap("a", { k: "v" }) });
    assert.ok(made.metadata.creationTimestamp instanceof Date);
    await refused(409, core.createNamespacedConfigMap({ namespace, body: configmap("a") }));
    const read = await core.readNamespacedConfigMap({ namespace, name: "a" });
    read.data.k = "w";
    await core.replaceNamespacedConfigMap({ namespace, name: "a", body: read });
    await refused(409, core.replaceNamespacedConfigMap({ namespace, name: "a", body: read }));
    const body = [{ op: "add", path: "/data/l", value: "x" }];
    const patched = await core.patchNamespacedConfigMap({ namespace, name: "a", body });
    assert.deepEqual(patched.data, { k: "w", l: "x" });
    const list = await core.listNamespacedConfigMap({ namespace, labelSelector: "app=x" });
    assert.deepEqual(list.items.map((item) => item.metadata.name), ["a"]);
    await core.deleteNamespacedConfigMap({ namespace, name: "a" });
    await refused(404, core.readNamespacedConfigMap({ namespace, name: "a" }));
}

async function watches() {
    const list = () => core.listNamespacedConfigMap({ namespace });
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const informer = k8s.makeInformer(config, path, list);
    const seen = [];
    const deleted = new Promise((resolve) => {
        informer.on("add", (object) => object.metadata.name === "w" && seen.push(`added ${object.data.k}`));
        informer.on("update", (object) => object.metadata.name === "w" && seen.push(`updated ${object.data.k}`));
        informer.on("delete", (object) => object.metadata.name === "w" && resolve());
    });
    const connected = new Promise((resolve) => informer.on("connect", resolve));
    await informer.start();
    await connected;
    await core.createNamespacedConfigMap({ namespace, body: configmap("w", { k: "1" }) });
    await core.patchNamespacedConfigMap({ namespace, name: "w", body: [{ op: "replace", path: "/data/k", value: "2" }] });
    await core.deleteNamespacedConfigMap({ namespace, name: "w" });
    await deleted;
    await informer.stop();
    assert.deepEqual(seen, ["added 1", "updated 2"]);
}

async function workloads() {
    const template = { metadata: { labels: { app: "d" } }, spec: { containers: [{ name: "main", image: "nginx" }] } };
    const spec = { replicas: 1, selector: { matchLabels: { app: "d" } }, template };
    const deployment = { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "d", namespace }, spec };
    await objects.create(deployment);
    const scale = await apps.readNamespacedDeploymentScale({ namespace, name: "d" });
    scale.spec.replicas = 3;
    // Controllers may write the Deployment at the same time.
    delete scale.metadata.resourceVersion;
    await apps.replaceNamespacedDeploymentScale({ namespace, name: "d", body: scale });
    assert.equal((await apps.readNamespacedDeployment({ namespace, name: "d" })).spec.replicas, 3);
    const applied = { ...deployment, spec: { ...spec, replicas: 5 } };
    await refused(409, objects.patch(applied, undefined, undefined, "js", false, k8s.PatchStrategy.ServerSideApply));
    const forced = await objects.patch(applied, undefined, undefined, "js", true, k8s.PatchStrategy.ServerSideApply);
    assert.equal(forced.spec.replicas, 5);
    await objects.delete(deployment);
}

async function kinds() {
    const group = `js.${namespace}.example.com`;
    const schema = { openAPIV3Schema: { type: "object", x_kubernetes_preserve_unknown_fields: true } };
    const definition = {
        apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", metadata: { name: `things.${group}` },
        spec: {
            group, scope: "Namespaced", names: { plural: "things", kind: "Thing" },
            versions: [{ name: "v1", served: true, storage: true, schema }],
        },
    };
    const definitions = config.makeApiClient(k8s.ApiextensionsV1Api);
    await definitions.createCustomResourceDefinition({ body: definition });
    const body = { apiVersion: `${group}/v1`, kind: "Thing", metadata: { name: "t" }, spec: { size: 1 } };
    const things = { group, version: "v1", namespace, plural: "things" };
    for (let tries = 0; ; tries++) {
        try {
            await custom.createNamespacedCustomObject({ ...things, body });
            break;
        } catch (error) {
            // The kind is served a moment after it is created.
            if (error.code !== 404 || tries > 100) throw error;
            await new Promise((resolve) => setTimeout(resolve, 100));
        }
    }
    const read = await custom.getNamespacedCustomObject({ ...things, name: "t" });
    assert.deepEqual(read.spec, { size: 1 });
    await definitions.deleteCustomResourceDefinition({ name: `things.${group}` });
}

for (const check of [maps, watches, workloads, kinds]) {
    await check();
    console.log("passed", check.name);
}
process.exit(0);
