# Compiles models to source with every check of the passes: paranoid.sh FOLDER SCRATCH
set -e
check() {
  model=$1; shift
  tenon compile "$folder/$model/model.onnx" --paranoid --stop-after=source "$@" > "$scratch"
}
folder=$1 scratch=$2
for path in "$folder"/*; do
  check "$(basename "$path")"
done
for limit in 0 1 3 20 90 220; do
  check llama-tiny-dynamo --rewrite-limit=$limit
  check whisper-tiny-ts --rewrite-limit=$limit
done
