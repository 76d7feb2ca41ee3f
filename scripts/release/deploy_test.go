package main

import (
	"reflect"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// TestCompose reads the compose file as Docker does. Every server has the release's image, and a read-only root.
func TestCompose(t *testing.T) {
	t.Parallel()
	options, err := cli.NewProjectOptions([]string{"../../deploy/compose/compose.yaml"}, cli.WithEnv([]string{
		"POSTGRES_PASSWORD=secret", "PUNTUALE_KEY=" + strings.Repeat("k", 40), "VERSION=1.2.3"}))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	servers := 0
	for name, service := range project.Services {
		if name == "db" || name == "proxy" {
			continue
		}
		servers++
		if service.Image != "puntuale:1.2.3" || !service.ReadOnly {
			t.Errorf("%s has the image %s, read-only %v", name, service.Image, service.ReadOnly)
		}
	}
	if servers != 4 {
		t.Errorf("%d servers and migrations", servers)
	}
}

// kinds has a type for each kind of resource in deploy/kubernetes.
var kinds = map[string]any{
	"v1/Namespace": corev1.Namespace{}, "v1/ConfigMap": corev1.ConfigMap{}, "v1/ServiceAccount": corev1.ServiceAccount{}, "v1/Service": corev1.Service{},
	"apps/v1/Deployment": appsv1.Deployment{}, "batch/v1/Job": batchv1.Job{}, "policy/v1/PodDisruptionBudget": policyv1.PodDisruptionBudget{},
	"autoscaling/v2/HorizontalPodAutoscaler": autoscalingv2.HorizontalPodAutoscaler{}, "networking.k8s.io/v1/NetworkPolicy": networkingv1.NetworkPolicy{},
}

// TestKubernetes builds the resources as "kubectl apply -k" does, and decodes each strictly into Kubernetes' own type. So
// no member has a wrong name or type.
func TestKubernetes(t *testing.T) {
	t.Parallel()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "../../deploy/kubernetes")
	if err != nil {
		t.Fatal(err)
	}
	images, settings := 0, []string(nil)
	for _, resource := range built.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		kind := strings.TrimPrefix(resource.GetApiVersion()+"/"+resource.GetKind(), "/")
		shape, ok := kinds[kind]
		if !ok {
			t.Errorf("%s is unknown to this test", kind)
			continue
		}
		if err := yaml.UnmarshalStrict(text, reflect.New(reflect.TypeOf(shape)).Interface()); err != nil {
			t.Errorf("%s %s: %v", kind, resource.GetName(), err)
		}
		images += strings.Count(string(text), "image: puntuale:latest")
		if kind == "v1/ConfigMap" {
			settings = append(settings, string(text))
		}
	}
	if all := strings.Join(settings, ""); !strings.Contains(all, "PUNTUALE_METRICS_ADDR: :9090") && !strings.Contains(all, `PUNTUALE_METRICS_ADDR: ":9090"`) {
		t.Errorf("the figures are at the port of the API, where the ingress can forward them: %s", all)
	}
	if images != 3 || len(built.Resources()) < 10 {
		t.Errorf("%d resources, of which %d name the image", len(built.Resources()), images)
	}
}
