package lang

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"wf/protocol"
)

// proven are the keys of the language outside of roles, each with the test that shows what it
// does. Keys for people alone name the test of what becomes of them.
var proven = map[string]string{
	"wf":                             "TestW14EveryCodeHasABadFileAndAGoodTwin",
	"name":                           "TestRunsAreNamedByTheirWorkflow",
	"description":                    "TestNotesForPeopleAreKeptWhereTheyAreRead",
	"on":                             "TestASchedule",
	"on.schedule":                    "TestASchedule",
	"on.schedule.cron":               "TestASchedule",
	"on.schedule.timezone":           "TestASchedule",
	"on.schedule.overlap":            "TestOverlap",
	"on.schedule.catch_up":           "TestCatchUp",
	"on.webhook":                     "TestAWebhook",
	"on.webhook.kind":                "TestAWebhook",
	"on.webhook.secret":              "TestAWebhook",
	"on.webhook.if":                  "TestAnEventGivesInputs",
	"on.webhook.with":                "TestAnEventGivesInputs",
	"inputs":                         "TestInputsGetTheirDefaults",
	"inputs.type":                    "TestEveryProblemOfTheInputsIsNamedAtOnce",
	"inputs.required":                "TestEveryProblemOfTheInputsIsNamedAtOnce",
	"inputs.default":                 "TestInputsGetTheirDefaults",
	"inputs.enum":                    "TestEveryProblemOfTheInputsIsNamedAtOnce",
	"inputs.description":             "TestNotesForPeopleAreKeptWhereTheyAreRead",
	"secrets":                        "TestSecretsReachTheCommandButNotTheJournal",
	"mcp":                            "TestAnAgentCallsTheToolsOfAServer",
	"mcp.command":                    "TestAProgramOfTheWorkflowWantsTrust",
	"mcp.env":                        "TestAProgramIsStartedOnlyIfTrusted",
	"mcp.url":                        "TestServersByHTTP",
	"mcp.headers_env":                "TestServersByHTTP",
	"mcp.sandbox":                    "TestAnEntrySaysWhetherItIsConfined",
	"mcp.network":                    "TestAServerSaysWhatItsProgramReaches",
	"notify":                         "TestSinksOfAWorkflow",
	"notify.name":                    "TestSinksOfAWorkflow",
	"notify.on":                      "TestEachMomentIsToldOnce",
	"notify.webhook":                 "TestAWebhookIsSigned",
	"notify.secret":                  "TestAWebhookIsSigned",
	"notify.command":                 "TestACommandRunsWithinWallsWithTheMessageOnStdin",
	"notify.desktop":                 "TestADesktopShowsNoMarkup",
	"notify.include":                 "TestAMessageHoldsWhatIsIncluded",
	"notify.network":                 "TestAPrivateAddressMustBeNamed",
	"notify.page":                    "TestAMessageHoldsWhatIsIncluded",
	"limits":                         "TestRules",
	"limits.steps":                   "TestLimitsAreRaisedOnResume",
	"limits.duration":                "TestALimitOfTimeStopsWhatRunsAndRaisedItGoesOn",
	"limits.cost_usd":                "testdata/script/x04_cost_limit.txtar",
	"limits.tokens":                  "TestX04ALimitOfTokensHoldsForSubWorkflows",
	"concurrency":                    "TestO03bRunsOfAGroupActOneAfterTheOther",
	"concurrency.group":              "TestO03bTheNameOfAGroupIsMadeOfInputs",
	"concurrency.max":                "TestO03bAGroupHasItsSlots",
	"concurrency.on_busy":            "TestO03bABusyGroupRefuses",
	"concurrency.release_on_suspend": "TestO03bASuspendedRunAndItsSlot",
	"workspace":                      "TestC02FilesAreRecordedAroundEachAttempt",
	"workspace.track":                "TestC02WhoseFilesAreRecorded",
	"workspace.include":              "TestC02WhatIsRecorded",
	"workspace.exclude":              "TestC02WhatIsRecorded",
	"workspace.max_size":             "TestC02WhatIsRecorded",
	"defaults":                       "TestSugarAndItsLongFormAreOneDefinition",
	"roles":                          "TestEveryKeyOfARoleHasAnEffectOrIsRefused",
	"edges":                          "TestRules",
	"edges.from":                     "TestRules",
	"edges.to":                       "TestRules",
	"edges.when":                     "TestRules",
	"edges.on":                       "TestRules",
	"edges.prompt":                   "TestALoopOfValuesRunsToItsEnd",
	"edges.limit":                    "TestRules",
	"edges.on_limit":                 "TestRules",
	"edges.for_each":                 "TestRules",
	"edges.max_parallel":             "TestRules",
	"always":                         "TestO06aAlwaysRolesRunHoweverARunEnds",
	"outputs":                        "TestRules",
}

// beside says for each key of a role the actions it has an effect with, and the test that shows
// it; for the keys of a mapping or of a list below it the test alone. "all" is every action.
var beside = map[string]struct{ actions, proof string }{
	"prompt":               {"prompt", "TestW01ReEntryLayout"},
	"run":                  {"run", "TestRunConcludesWithTextAndExitCode"},
	"ask":                  {"ask", "TestAskConcludesWithTheAnswer"},
	"stdin":                {"run", "TestACommandReadsWhatItsRoleSays"},
	"stdin.file":           {"", "TestACommandReadsAFileOfTheWorkspace"},
	"artifacts":            {"prompt run", "TestO06bArtifactsAreKeptOfAVisitThatEnded"},
	"artifacts.paths":      {"", "TestO06bBeyondALimitTheVisitFails"},
	"artifacts.from":       {"", "TestO06bALaterRoleIsGivenTheFiles"},
	"artifacts.max_size":   {"", "TestO06bBeyondALimitTheVisitFails"},
	"artifacts.max_total":  {"", "TestO06bBeyondALimitTheVisitFails"},
	"artifacts.max_files":  {"", "TestO06bBeyondALimitTheVisitFails"},
	"cache":                {"prompt run", "TestM01TheWholeWorkspace"},
	"cache.inputs":         {"", "TestM01AResultIsReused"},
	"cache.outputs":        {"", "TestM01WritesBesideTheOutputsPreventStoring"},
	"cache.env":            {"", "TestM02TheFirstThingThatDiffersIsNamed"},
	"cache.toolchain":      {"", "TestM02TheFirstThingThatDiffersIsNamed"},
	"cache.scope":          {"", "TestM01TheScopeOfResults"},
	"cache.for":            {"", "TestM01AResultIsReusedForATime"},
	"workflow":             {"workflow", "TestASubWorkflowHandsItsQuestionUpAndTheAnswerDown"},
	"wait":                 {"wait", "TestWaitTellsWhenItIsDue"},
	"wait.for":             {"", "TestWaitTellsWhenItIsDue"},
	"wait.until":           {"", "TestWaitTellsWhenItIsDue"},
	"wait.signal":          {"", "TestWaitEnds"},
	"set":                  {"set", "TestSetConcludesWithItsValues"},
	"merge":                {"merge", "TestC04CodersSideBySideAreMerged"},
	"merge.of":             {"", "TestC04CodersSideBySideAreMerged"},
	"workspace":            {"prompt run workflow", "TestC04CodersSideBySideAreMerged"},
	"workspace.own":        {"", "TestC04WhatACopyBrings"},
	"workspace.carry":      {"", "TestC04WhatACopyBrings"},
	"workspace.max_copy":   {"", "TestC04ACopyIsRefusedByItsSize"},
	"workspace.whole":      {"", "TestC04WholeCopiesAreAskedFor"},
	"with":                 {"workflow", "TestASubWorkflowHandsItsQuestionUpAndTheAnswerDown"},
	"choices":              {"ask", "TestAskConcludesWithTheAnswer"},
	"choices.label":        {"", "TestAskConcludesWithTheAnswer"},
	"choices.value":        {"", "TestAskConcludesWithTheAnswer"},
	"choices.primary":      {"", "TestTheCanonicalDefinitionHoldsWhatIsMeant"},
	"form":                 {"ask", "TestASubWorkflowHandsItsFormUp"},
	"output":               {"prompt run", "TestW21CommandAnswersLikeAnAgent"},
	"concurrency":          {"prompt run workflow", "TestO03bAttemptsOfARoleTakeTurns"},
	"concurrency.group":    {"", "TestO03bTheNameOfAGroupIsMadeOfInputs"},
	"concurrency.max":      {"", "TestO03bAttemptsOfARoleTakeTurns"},
	"concurrency.on_busy":  {"", "TestO03bAnAttemptIsRefused"},
	"description":          {"all", "TestNotesForPeopleAreKeptWhereTheyAreRead"},
	"tools":                {"prompt", "TestPoliciesOfRoleAgentAndTool"},
	"model":                {"prompt", "TestResolutionHasAnOrder"},
	"params":               {"prompt", "TestTheBytesOfARequest"},
	"max_turns":            {"prompt", "TestCallsForEverAreBoundedByTurns"},
	"patience":             {"prompt", "TestPatience"},
	"context":              {"prompt workflow", "TestTheOptionsOfTasks"},
	"task":                 {"prompt workflow", "TestTheOptionsOfTasks"},
	"task.summaries":       {"", "TestR02ATaskReadsSummariesAndItsOwnRunAlone"},
	"task.summary":         {"", "TestSummariesAreWrittenByWhomTheRoleNames"},
	"task.words":           {"", "TestSummariesAreWrittenByWhomTheRoleNames"},
	"task.model":           {"", "TestSummariesAreWrittenByWhomTheRoleNames"},
	"task_summaries":       {"prompt", "TestTheOptionsOfTasks"},
	"dynamic":              {"prompt", "TestDynamicTextIsReadOnlyWhereTheRoleAsks"},
	"compaction":           {"prompt", "TestB04AConversationIsCompactedPastTheWatermarkAndNotAtIt"},
	"compaction.watermark": {"", "TestB04AConversationIsCompactedPastTheWatermarkAndNotAtIt"},
	"compaction.keep":      {"", "TestHowManyVisitsStayWhole"},
	"compaction.model":     {"", "TestB06LaterVisitsResumeTheCompaction"},
	"memory":               {"prompt", "TestB01RecalledMemoriesComeAfterTheStablePrefix"},
	"memory.scope":         {"", "TestARoleWithoutAMemoryIsToldWhereTheToolIsNamed"},
	"memory.recall":        {"", "TestB01RecalledMemoriesComeAfterTheStablePrefix"},
	"memory.top_k":         {"", "TestB01RecalledMemoriesComeAfterTheStablePrefix"},
	"memory.distance":      {"", "TestB01RecalledMemoriesComeAfterTheStablePrefix"},
	"memory.embed":         {"", "TestAModelOfVectorsThatIsDownSuspendsTheVisitBeforeItBegins"},
	"sandbox":              {"prompt run", "TestPoliciesOfRoleAgentAndTool"},
	"network":              {"prompt run", "TestPoliciesOfRoleAgentAndTool"},
	"on_timeout":           {"ask", "TestAQuestionThatIsNotAnsweredInTime"},
	"on_timeout.escalate":  {"", "TestAQuestionIsPutToFurtherPeople"},
	"on_timeout.then":      {"", "TestAQuestionIsPutToFurtherPeople"},
	"remind":               {"ask", "TestAQuestionIsCalledToMind"},
	"assignees":            {"ask", "TestAssigneesBindAuthenticatedAnswers"},
	"timeout":              {"ask prompt run workflow", "TestATimeoutIsAFailureOfWhatWorks"},
	"retry":                {"ask prompt run workflow", "TestAFurtherAttemptIsMadeOfWhatWorks"},
	"retry.attempts":       {"", "TestAFurtherAttemptIsMadeOfWhatWorks"},
	"retry.delay":          {"", "TestTheDelayOfARetryGrowsToItsBound"},
	"retry.factor":         {"", "TestTheDelayOfARetryGrowsToItsBound"},
	"retry.max_delay":      {"", "TestTheDelayOfARetryGrowsToItsBound"},
	"retry.anew":           {"", "TestAFurtherAttemptBeginsAnewWhereTheRoleSaysSo"},
	"retry.on":             {"", "TestAFurtherAttemptIsMadeOfWhatWorks"},
	"max_visits":           {"all", "TestEveryRoleIsBoundedAndRouted"},
	"route":                {"all", "TestEveryRoleIsBoundedAndRouted"},
	"continue_on_error":    {"all", "TestAFailureIsDataWhateverTheRoleDoes"},
	"once":                 {"run", "TestACommandCountedAsFailedRunsAgainWhenResumed"},
	"needs":                {"prompt run", "TestARunWaitsForAWorkerThatHasWhatItNeeds"},
	"env":                  {"prompt run", "TestRunEnvironmentIsClean"},
	"dir":                  {"prompt run", "TestRunWorksInItsDirectory"},
}

// TestEveryKeyOfTheGrammarIsProven fails for a key that was added without saying what shows its
// effect, and for a proof that is no longer there.
func TestEveryKeyOfTheGrammarIsProven(t *testing.T) {
	known := map[string]bool{}
	names := func(prefix string, s *shape, stop *shape) {
		walkKeys(prefix, s, stop, func(path string) { known[path] = true })
	}
	names("", grammar().workflow, grammar().role)
	delete(known, "")
	for path := range known {
		if _, ok := proven[path]; !ok && !strings.HasPrefix(path, "defaults.") {
			t.Errorf("%s has no proof", path)
		}
	}
	for path := range proven {
		if !known[path] {
			t.Errorf("%s is no key of the grammar", path)
		}
	}
	known = map[string]bool{}
	names("", grammar().role, nil)
	for path := range known {
		if _, ok := beside[path]; !ok {
			t.Errorf("roles.%s is not in the table", path)
		}
	}
	for path := range beside {
		if !known[path] {
			t.Errorf("roles.%s is no key of the grammar", path)
		}
	}
	tests := testsOfTheTree(t)
	for path, proof := range proven {
		if !tests[proof] {
			t.Errorf("%s: there is no test %s", path, proof)
		}
	}
	for path, b := range beside {
		if !tests[b.proof] {
			t.Errorf("roles.%s: there is no test %s", path, b.proof)
		}
	}
}

// walkKeys gives the path of every key below s; of lists and maps the path of what holds them.
func walkKeys(path string, s, stop *shape, yield func(string)) {
	if s == nil || s == stop && stop != nil {
		return
	}
	for _, k := range s.keys {
		at := strings.TrimPrefix(path+"."+k.name, ".")
		yield(at)
		walkKeys(at, k.shape, stop, yield)
	}
	walkKeys(path, s.elem, stop, yield)
	for _, a := range s.alts {
		walkKeys(path, a, stop, yield)
	}
}

// testsOfTheTree are the names of the tests of the module, and its scripts.
func testsOfTheTree(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git"):
			return fs.SkipDir
		case strings.HasSuffix(path, ".txtar"):
			out[filepath.ToSlash(strings.TrimPrefix(path, filepath.Join(root, "cmd", "wf")+string(filepath.Separator)))] = true
		case strings.HasSuffix(path, "_test.go"):
			src, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, m := range declared.FindAllSubmatch(src, -1) {
				out[string(m[1])] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// samples are a value of each key of a role that says something other than its default.
var samples = map[string]string{
	"prompt": "Go.", "run": "ls", "ask": "Why?", "workflow": "child.yaml", "wait": "1s", "set": "{x: 1}", "with": "{n: 2}",
	"choices": "[yes, no]", "form": "{type: object, properties: {a: {type: string}}}", "output": "{type: object, properties: {a: {type: string}}}",
	"description": "What it is for.", "tools": "[read_file]", "model": "a/b", "params": "{temperature: 1}", "max_turns": "3", "patience": "1m",
	"context": "task", "task": "{words: 10}", "task_summaries": "1", "dynamic": "[date]", "compaction": "{keep: 2}", "memory": "true",
	"sandbox": "off", "network": "allow", "timeout": "1m", "retry": "2", "max_visits": "3", "route": "all", "continue_on_error": "true",
	"once": "true", "needs": "[gpu]", "concurrency": "g", "on_timeout": "escalate", "remind": "1m", "assignees": "[anna]", "stdin": "text", "env": "{A: b}", "dir": "sub", "artifacts": "[dist]", "merge": "{of: coder}", "workspace": "own", "cache": "true",
}

// TestEveryKeyOfARoleHasAnEffectOrIsRefused loads each key beside each action: either the
// definition is another one, or the key is an error that says what to do.
func TestEveryKeyOfARoleHasAnEffectOrIsRefused(t *testing.T) {
	read := func(string) ([]byte, error) {
		return []byte("wf: 1\nname: child\ninputs: {n: integer}\nroles: {a: {set: {x: 1}}}"), nil
	}
	load := func(role string) (cid string, ds []Diagnostic) {
		p, ds := Load([]byte("wf: 1\nname: t\nlimits: {cost_usd: 1, duration: 1h}\nroles:\n  a:\n"+role+besideMerge(role)), Options{Read: read})
		if p == nil {
			return "", ds
		}
		b, err := p.Block()
		if err != nil {
			t.Fatal(err)
		}
		return b.Link.String(), ds
	}
	for _, k := range grammar().role.keys {
		want := strings.Fields(beside[k.name].actions)
		if _, ok := samples[k.name]; !ok {
			t.Errorf("there is no sample of %s", k.name)
			continue
		}
		for _, a := range actions {
			if slices.Contains(actions, protocol.Action(k.name)) {
				continue // the action itself: a role has one
			}
			base := fmt.Sprintf("    %s: %s\n", a, samples[string(a)])
			switch {
			case k.name == "task" && a == protocol.ActWorkflow:
				base += "    context: task\n"
			case (k.name == "on_timeout" || k.name == "retry") && a == protocol.ActAsk:
				base += "    timeout: 1h\n"
			}
			plain, ds := load(base)
			if plain == "" {
				t.Fatalf("%s: %v", a, ds)
			}
			with, ds := load(base + fmt.Sprintf("    %s: %s\n", k.name, samples[k.name]))
			if slices.Contains(want, string(a)) || slices.Equal(want, []string{"all"}) {
				if with == "" || with == plain && k.name != "description" {
					t.Errorf("%s beside %s changes nothing, %v", k.name, a, ds)
				}
				continue
			}
			i := slices.IndexFunc(ds, func(d Diagnostic) bool {
				return d.Severity == SeverityError && strings.Contains(d.Message, k.name+" means nothing beside "+string(a))
			})
			if i < 0 || ds[i].Hint == "" {
				t.Errorf("%s beside %s is taken without an effect, %v", k.name, a, ds)
			}
		}
	}
}

// TestADefinitionThatAnEarlierGrammarTookStillOpens keeps the runs that pin one.
func TestADefinitionThatAnEarlierGrammarTookStillOpens(t *testing.T) {
	w := &protocol.Workflow{Kind: protocol.KindWorkflow, V: protocol.RecordVersion, Name: "t",
		Roles: []protocol.Role{{Name: "a", Action: protocol.ActAsk, Ask: "Why?", Timeout: 1_000_000, Cache: "true"}},
		Edges: []protocol.Edge{{From: []string{"START"}, To: []string{"a"}}, {From: []string{"a"}, To: []string{"END"}}}}
	p, err := Compile(w, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := p.Block()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := b.Link.String(), "bafyreie4kaeli36d35sulzjt2jv2cnzumstg7jhmvxkq2qo4624cpns2qq"; got != want {
		t.Errorf("its CID is %s, want %s", got, want)
	}
}

// TestNotesForPeopleAreKeptWhereTheyAreRead: the description of a workflow and of an input are
// shown, so the definition has them; that of a role is a comment.
func TestNotesForPeopleAreKeptWhereTheyAreRead(t *testing.T) {
	p, ds := Load([]byte("wf: 1\nname: t\ndescription: Of it.\ninputs: {n: {type: integer, description: Of n.}}\n"+
		"roles: {a: {set: {x: 1}, description: Of a.}}"), Options{})
	if p == nil {
		t.Fatal(ds)
	}
	if p.Workflow.Description != "Of it." || p.Workflow.Inputs["n"].Description != "Of n." {
		t.Errorf("%q, %q", p.Workflow.Description, p.Workflow.Inputs["n"].Description)
	}
}

func TestRunsAreNamedByTheirWorkflow(t *testing.T) {
	for src, want := range map[string]string{"name: own\n": "own", "": "file"} {
		p, ds := Load([]byte("wf: 1\n"+src+"roles: {a: {set: {x: 1}}}"), Options{File: "dir/file.yaml"})
		if p == nil || p.Workflow.Name != want {
			t.Errorf("%q: %v, want %q", src, ds, want)
		}
	}
}
