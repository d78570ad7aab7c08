# The PROMPT_COMMAND of a session's shell. It reads commands from descriptor 60 and evaluates them
# one by one at top level, so that `declare`, `return`, traps and jobs work as in any shell. After
# an interrupt, bash runs PROMPT_COMMAND again.
declare +x PROMPT_COMMAND

# Markers go through the terminal, so that they keep their order among the output.
__perdure_mark() {
    builtin printf '\036%s %d %s %d\0%s\0' "$__perdure_nonce" "$__perdure_number" "$1" "$2" "$PWD" \
        >/dev/tty
}

__perdure_ended() {
    [[ ${__perdure_number-} ]] || return 0
    __perdure_status=$1
    __perdure_restore_variables
    __perdure_mark ended "$1"
    __perdure_number=
    builtin jobs >/dev/null # removes finished jobs, as a prompt would
}

# A secret is in the environment of one command only; the variable's earlier value is restored.
__perdure_export_secret() {
    if [[ -v $1 && ! -v __perdure_secrets[$1] ]]; then
        __perdure_earlier[$1]=${!1}
    fi
    __perdure_secrets[$1]=1
    IFS= builtin read -r -d '' -u 60 "$1" && builtin export "$1"
}

__perdure_restore_variables() {
    local __perdure_name
    for __perdure_name in "${!__perdure_secrets[@]}"; do
        builtin unset -v "$__perdure_name"
        if [[ -v __perdure_earlier[$__perdure_name] ]]; then
            builtin export "$__perdure_name=${__perdure_earlier[$__perdure_name]}"
        fi
    done
    __perdure_secrets=() __perdure_earlier=()
}

__perdure_read_command() {
    local __perdure_frame
    while :; do
        IFS= builtin read -r -d '' -u 60 __perdure_frame || builtin exit
        if [[ $__perdure_frame == "$__perdure_nonce lend "* ]]; then
            __perdure_export_secret "${__perdure_frame##* }"
            continue
        fi
        # An interrupt may leave a partial frame, which is no command.
        [[ $__perdure_frame == "$__perdure_nonce "* ]] && break
    done
    __perdure_frame=${__perdure_frame#* }
    __perdure_number=${__perdure_frame%%$'\n'*}
    __perdure_command=${__perdure_frame#*$'\n'}
    __perdure_mark begun $$
}

__perdure_restore_status() { return "$__perdure_status"; }

IFS= builtin read -r -d '' -u 60 __perdure_nonce || builtin exit
set +o history +o histexpand
unset MAILCHECK
PS1= PS2=
declare -A __perdure_secrets=() __perdure_earlier=()
__perdure_status=0
# `break` and C-z leave every loop, also this one: hence the nested restart.
__perdure_loop='
while { __perdure_ended "$?"; __perdure_read_command; } 2>/dev/null; do
    { __perdure_restore_status && :; } 2>/dev/null
    eval "$__perdure_command" 60<&-
done
eval "$__perdure_loop"'
# Twice, because an assignment to the plain variable replaces the first element only.
PROMPT_COMMAND=("$__perdure_loop" "$__perdure_loop")
eval "$__perdure_loop"
