#!/usr/bin/env bash
# Every benchmark, one after the other on a quiet machine, then the page: bash tests/benchmarks/all.sh OUT
# OUT keeps figures (.json), what was printed (.txt) and vaults (vaults/); vaults that are there are used again,
# and the first embedding of a vault is measured only when it is made: begin with an empty OUT for all figures.
set -euo pipefail
out=$(mkdir -p "${1:?usage: bash tests/benchmarks/all.sh OUT}" && cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
vaults=$out/vaults
mkdir -p "$vaults"

measure() { # NAME SCRIPT [OPTION]...
    local name=$1 script=$2
    shift 2
    echo "== $name"
    python "$here/$script" "$@" --json "$out/$name.json" | tee "$out/$name.txt"
}

# Times first, while the machine is cool; scale.py before stages.py, which asks its vaults again.
measure scale scale.py --notes 1000 --notes 10000 --notes 100000 --keep "$vaults"
measure stages stages.py --all --keep "$vaults"
measure extraction extraction.py --notes 10000 --keep "$vaults"
measure hooks hooks.py --keep "$vaults"
measure servers servers.py --keep "$vaults"
measure night night.py --keep "$vaults"
measure as-of as_of.py --keep "$vaults"
measure repository repository.py
measure repository-audit repository.py --notes 10000 --commits 2000 --audit
measure projects projects.py --repo "$vaults/quaid-projects"
for facts in none observation extraction; do
    measure "locomo-$facts" locomo.py --facts "$facts" --keep "$vaults"
done
for facts in none observation; do
    measure "answers-$facts" answers.py --facts "$facts" --keep "$vaults"
done
measure answers-beam answers.py --beam --keep "$vaults"
measure beam beam.py --keep "$vaults"
measure beam-held-out beam.py --held-out --keep "$vaults"
measure beam-500k beam.py --size 500K --pool user --keep "$vaults"
measure realtalk locomo.py --realtalk --keep "$vaults"
measure longmemeval longmemeval.py --pool user --pool both --keep "$vaults"
measure precision precision.py
measure injections injections.py
measure weights learn_weights.py --keep "$vaults"
measure ablation ablation.py --keep "$vaults"
measure several-vaults several_vaults.py --keep "$vaults"
measure year year.py # twenty minutes
python "$here/report.py" "$out"
