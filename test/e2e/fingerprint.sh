#!/bin/sh
# fingerprint.sh FOLDER MODEL...: whether the tiny models' fused IR is the same.
set -e
folder=$1
shift
for model in "$@"; do
  tenon compile "$(dirname "$0")/../models/tiny/$model/model.onnx" --emit=ir -o "$folder/$model.tn"
  tenon inspect "$folder/$model.tn" | sed -n 's/.*fingerprint //p'
done | sort -u > "$folder/all"
if [ "$(wc -l < "$folder/all")" = 1 ]; then echo "one fingerprint"; else echo "different fingerprints"; fi
