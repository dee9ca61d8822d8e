package lang

import (
	"strconv"
	"strings"
	"testing"
)

func TestMoneyIsReadWithoutFloats(t *testing.T) {
	for in, want := range map[string]int64{"1.50": 1_500_000, "0.1": 100_000, ".000001": 1, "3": 3_000_000, "0.29": 290_000, "+2.": 2_000_000,
		"1e3": -1, "-1": -1, "1.0000001": -1, "": -1, ".": -1, "1,5": -1, "9999999999": -1} {
		got, ok := parseMoney(in)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q: %d, want %d", in, got, want)
		}
	}
}

func TestDecimalsHaveOneForm(t *testing.T) {
	for in, want := range map[string]string{"2.0": "2", ".50": "0.5", "1.25": "1.25", "007": "7", "0": "0", "x": "", "1e2": "", "-1": ""} {
		if got, _ := parseDecimal(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestDurationsAreMicroseconds(t *testing.T) {
	for in, want := range map[string]int64{"90s": 90_000_000, "10m": 600_000_000, "1h30m": 5_400_000_000, "1.5s": 1_500_000, "1us": 1,
		"1752000h": 1752000 * 3600 * 1e6, "1752001h": 0, "2500000h": 0, "1ns": 0, "0s": 0, "-1s": 0, "5": 0, "1d": 0, "": 0} {
		if got, ok := parseDuration(in); got != want || ok != (want > 0) {
			t.Errorf("%q: %d %v, want %d", in, got, ok, want)
		}
	}
}

func TestTheNearestNameIsTheOneThatWasMeant(t *testing.T) {
	names := []string{"prompt", "retry", "route", "run", "once", "output", "timeout"}
	for in, want := range map[string]string{"promtp": "prompt", "Prompt": "prompt", "outptu": "output", "tiemout": "timeout", "rn": "run", "something": "", "x": ""} {
		if got := nearest(in, names); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestOnlyUnquotedUsesOfAVariableAreFound(t *testing.T) {
	for cmd, want := range map[string]string{
		`ls $V`: "3", `ls "$V"`: "", `ls '$V'`: "", `ls \$V`: "", `ls $VX`: "", `ls ${V}`: "3", `ls ${V:-x}`: "3", `ls "${V}"`: "",
		`V=$V ls`: "", `X="$V" ls $V`: "10", `ls "a"$V`: "6", `echo $(ls $V)`: "10", `echo "$(ls "$V")"`: "", `echo "$(ls $V)"`: "11",
		"echo `ls $V`": "9", `echo $((V + 1))`: "", `echo $(($V + 1))`: "", `echo ${#V}`: "", `# $V`: "", `a#$V`: "2", "ls # $V\nls $V": "11",
		"cat <<E\n$V\nE\nls $V": "16", "cat <<-'E'\n\t$V\n\tE\nls $V": "21", `cat <<<$V`: "7", `ls ${X:-$V}`: "8", `ls ${X:-"$V"}`: "",
		`case $V in a) ls;; esac`: "", "x; case\t$V\nin $V) ls $V;; esac": "14 21", `case a$V in *) ls;; esac`: "", `case "$V" in *) ls $V;; esac`: "19", `case $(ls $V) in *) ls $V;; esac`: "10 23",
		`echo case $V in`: "10", `case ${V:-x} in a) ls;; esac`: "", "if case $V in a) ls $V;; esac; then ls; fi": "20", `! case $V in a) ls;; esac`: "", `(case $V in a) ls;; esac)`: "", `echo $(case $V in a) ls;; esac)`: "",
		`for case in $V; do ls; done`: "12", `ls; "case" $V in`: "11", `case=$V ls $V`: "11", `ls -- case $V`: "11", `{ case $V in (a) ls;; (b) ls $V;; esac; }`: "29",
		`while case $V in a) ls;; esac; do case $V in b) ls $V;; esac; done`: "51",
		`ls "`: "", `ls $`: "", `ls ${V`: "3", `echo $(`: "", `\`: "", `ls $V $V`: "3 6",
	} {
		var got []string
		for _, u := range unquoted(cmd, map[string]bool{"V": true}) {
			got = append(got, strconv.Itoa(u.at))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s: %q, want %q", cmd, s, want)
		}
	}
}
