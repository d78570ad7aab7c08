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
    __perdure_tell ended "$1"
    __perdure_call=
    builtin jobs >/dev/null # forgets those that are done, as a prompt would
}

__perdure_next() {
    local frame
    while :; do
        IFS= builtin read -r -d '' -u 60 frame || builtin exit
        # What an interrupt left of a frame is no command.
        [[ $frame == "$__perdure_nonce "* ]] && break
    done
    frame=${frame#* }
    __perdure_call=${frame%%$'\n'*}
    __perdure_command=${frame#*$'\n'}
    __perdure_tell begun $$
}

__perdure_restore() { return "$__perdure_status"; }

IFS= builtin read -r -d '' -u 60 __perdure_nonce || builtin exit
set +o history +o histexpand
unset MAILCHECK
PS1= PS2=
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
