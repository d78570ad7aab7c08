# What the shell of a session runs in place of showing a prompt: it takes the commands that come
# through descriptor 60 and evaluates them one by one, at top level, so that `declare`, `return`,
# traps and jobs are as in any shell. After an interrupt, bash comes here again by itself.
declare +x PROMPT_COMMAND

# What is told goes through the terminal, where it stands in its place among the output.
__perdure_tell() {
    builtin printf '\036%s %d %s %d\0%s\0' "$__perdure_nonce" "$__perdure_call" "$1" "$2" "$PWD" \
        >/dev/tty
}

__perdure_ended() {
    [[ ${__perdure_call-} ]] || return 0
    __perdure_status=$1
    __perdure_take_back
    __perdure_tell ended "$1"
    __perdure_call=
    builtin jobs >/dev/null # forgets those that are done, as a prompt would
}

# A secret is in the environment of one command; what the variable was before comes back after it.
__perdure_lend() {
    if [[ -v $1 && ! -v __perdure_lent[$1] ]]; then
        __perdure_before[$1]=${!1}
    fi
    __perdure_lent[$1]=1
    IFS= builtin read -r -d '' -u 60 "$1" && builtin export "$1"
}

__perdure_take_back() {
    local __perdure_name
    for __perdure_name in "${!__perdure_lent[@]}"; do
        builtin unset -v "$__perdure_name"
        if [[ -v __perdure_before[$__perdure_name] ]]; then
            builtin export "$__perdure_name=${__perdure_before[$__perdure_name]}"
        fi
    done
    __perdure_lent=() __perdure_before=()
}

__perdure_next() {
    local __perdure_frame
    while :; do
        IFS= builtin read -r -d '' -u 60 __perdure_frame || builtin exit
        if [[ $__perdure_frame == "$__perdure_nonce lend "* ]]; then
            __perdure_lend "${__perdure_frame##* }"
            continue
        fi
        # What an interrupt left of a frame is no command.
        [[ $__perdure_frame == "$__perdure_nonce "* ]] && break
    done
    __perdure_frame=${__perdure_frame#* }
    __perdure_call=${__perdure_frame%%$'\n'*}
    __perdure_command=${__perdure_frame#*$'\n'}
    __perdure_tell begun $$
}

__perdure_restore() { return "$__perdure_status"; }

IFS= builtin read -r -d '' -u 60 __perdure_nonce || builtin exit
set +o history +o histexpand
unset MAILCHECK
PS1= PS2=
declare -A __perdure_lent=() __perdure_before=()
__perdure_status=0
# `break` and C-z leave every loop, ours too: hence once more after it.
__perdure_loop='
while { __perdure_ended "$?"; __perdure_next; } 2>/dev/null; do
    { __perdure_restore && :; } 2>/dev/null
    eval "$__perdure_command" 60<&-
done
eval "$__perdure_loop"'
# Twice, because who assigns to it, as to a plain variable, replaces the first only.
PROMPT_COMMAND=("$__perdure_loop" "$__perdure_loop")
eval "$__perdure_loop"
